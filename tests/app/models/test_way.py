"""One model's way: what an earlier run left, and names that may come from anybody."""

import json
from pathlib import Path

import pytest

from app.models.hub import Offer, RemoteFile
from app.models.way import DownloadState, Way, local_name, way_of
from engine.errors import DownloadEnded


def way(folder: Path, *names: str) -> Way:
    files = tuple(RemoteFile(name, f"https://x/{name}", 10, "") for name in names)
    targets = [folder / name for name in names]
    return Way("m", Offer("a/b", "Q8_0", files), targets, ["" for _ in names])


def test_a_note_brings_the_way_back_as_it_was(tmp_path: Path) -> None:
    first = way(tmp_path, "m.gguf")
    first.note_etag(0, '"one"')
    (tmp_path / "m.gguf.part").write_bytes(b"1234")
    again = way_of(first.note)
    assert again is not None
    assert (again.name, again.etags, again.offer) == ("m", ['"one"'], first.offer)
    assert again.is_of(first.offer)
    shown = again.shown()
    assert (shown.state, shown.num_bytes, shown.total_bytes) == (DownloadState.PAUSED, 4, 10)
    assert shown.seconds_left is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "7", "{}", "[" * 100_000),
        *('{"etags": [], "files": []}', '{"etags": [""], "files": [7]}'),
    ],
    ids=lambda text: text[:30],
)
def test_a_note_that_cannot_be_understood_is_none(tmp_path: Path, text: str) -> None:
    note = tmp_path / "m.gguf.download"
    note.write_text(text)
    assert way_of(note) is None


def test_a_note_cannot_name_a_file_elsewhere(tmp_path: Path) -> None:
    first = way(tmp_path, "m.gguf")
    first.keep_note()
    values = json.loads(first.note.read_text())
    values["files"][0]["name"] = "../../evil.gguf"
    first.note.write_text(json.dumps(values))
    again = way_of(first.note)
    assert again is not None and again.targets == [tmp_path / "evil.gguf"]
    values["files"][0]["name"] = "no model"
    first.note.write_text(json.dumps(values))
    assert way_of(first.note) is None


def test_giving_up_deletes_what_came_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "other.gguf").touch()
    first = way(tmp_path, "m.gguf")
    first.keep_note()
    (tmp_path / "m.gguf.part").touch()
    first.delete()
    assert [file.name for file in tmp_path.iterdir()] == ["other.gguf"]


@pytest.mark.parametrize("name", ["a.gguf", "x/y/Größe (2) v1.0+b.gguf", "A.GGUF"])
def test_usual_names_are_kept(name: str) -> None:
    assert local_name(name) == name.rpartition("/")[2]


@pytest.mark.parametrize(
    "name", ["", "a.bin", ".gguf", "..gguf", "a\n.gguf", "a:b.gguf", "x" * 300]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(DownloadEnded, match="is not a name for a model file"):
        local_name(name)
