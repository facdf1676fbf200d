"""What is ours and what was added."""

from pathlib import Path

import pytest

from app.models.shelf import Brought, Shelf
from engine.errors import HomeError


def test_what_was_brought_and_added_is_remembered_and_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    Shelf(path).note_brought(Brought("a.gguf", "some/one", "Q8_0"))
    Shelf(path).note_brought(Brought("a.gguf", "some/other", "Q8_0"))
    Shelf(path).note_added(tmp_path / "b.gguf")
    Shelf(path).note_added(tmp_path / "b.gguf")
    shelf = Shelf(path)
    assert shelf.brought() == [Brought("a.gguf", "some/other", "Q8_0")]
    assert shelf.added() == [tmp_path / "b.gguf"]
    shelf.forget(tmp_path / "b.gguf")
    shelf.forget(tmp_path / "models" / "a.gguf")
    shelf.forget(tmp_path / "never.gguf")
    assert (shelf.brought(), shelf.added()) == ([], [])


def test_nothing_yet_is_empty_and_strange_entries_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    assert Shelf(path).brought() == []
    path.write_text('{"brought": [7, {"file": 3}, {"file": "a.gguf"}], "added": [1, "/b.gguf"]}')
    assert Shelf(path).brought() == [Brought("a.gguf")]
    assert Shelf(path).added() == [Path("/b.gguf")]


def test_a_damaged_list_is_one_sentence_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    path.write_text("{")
    with pytest.raises(HomeError, match="correct the file, or delete it; the models themselves"):
        Shelf(path).note_added(tmp_path)
    assert path.read_text() == "{"
