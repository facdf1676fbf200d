"""Which model files are here, and which of them a name means."""

import os
from pathlib import Path

import pytest

from app.models import local
from app.models.elsewhere import Elsewhere
from app.models.local import find_model, list_models
from app.models.shelf import Brought, Shelf
from app.paths import Paths
from app.settings import Settings
from engine.errors import ModelNotFound


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    paths = Paths.from_environment({"INGLENOOK_HOME": str(tmp_path / "home")})
    paths.create()
    (paths.models / "clever.gguf").write_bytes(b"GGUF")
    return paths


def without_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "starter_model", lambda: None)


@pytest.mark.parametrize("name", ["clever", "clever.gguf"])
def test_a_name_means_the_file_in_the_models_folder(paths: Paths, name: str) -> None:
    assert find_model(paths, Settings(), name) == paths.models / "clever.gguf"


def test_a_path_is_taken_as_it_is_whether_or_not_it_exists(paths: Paths, tmp_path: Path) -> None:
    assert find_model(paths, Settings(), str(tmp_path / "gone.gguf")) == tmp_path / "gone.gguf"


def test_no_name_means_the_chosen_one(paths: Paths) -> None:
    assert find_model(paths, Settings(model="clever"), "") == paths.models / "clever.gguf"


def test_a_name_goes_before_the_chosen_one(paths: Paths, starter: Path) -> None:
    assert find_model(paths, Settings(model="clever"), "starter") == starter


def test_without_any_model_the_sentence_says_what_to_do(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_starter(monkeypatch)
    with pytest.raises(ModelNotFound, match="make install"):
        find_model(paths, Settings(), "")


def test_the_list_marks_the_starter_and_the_chosen_one(paths: Paths, starter: Path) -> None:
    listed = list_models(paths, Settings(model="clever"))
    assert [(model.name, model.is_starter, model.is_chosen) for model in listed] == [
        ("starter", True, False),
        ("clever", False, True),
    ]
    assert [model.source for model in listed] == ["starter", "models folder"]


def test_a_missing_starter_leaves_the_others(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    without_starter(monkeypatch)
    assert [model.name for model in list_models(paths, Settings())] == ["clever"]


def names(paths: Paths, settings: Settings = Settings()) -> list[str]:  # noqa: B008 - frozen
    return [model.name for model in list_models(paths, settings) if not model.is_starter]


def test_a_file_on_its_way_is_neither_listed_nor_found(paths: Paths) -> None:
    part = paths.models / "new.gguf.part"
    part.write_bytes(b"GGUF")
    (paths.models / "new.gguf.download").write_text("{}")
    assert names(paths) == ["clever"]
    for name in ("new", "new.gguf", "new.gguf.part"):
        assert find_model(paths, Settings(), name).parent != paths.models


def test_a_model_in_parts_is_one(paths: Paths) -> None:
    for number in (1, 2):
        (paths.models / f"big-0000{number}-of-00002.gguf").write_bytes(b"12345")
    assert names(paths) == ["big", "clever"]
    first = paths.models / "big-00001-of-00002.gguf"
    assert find_model(paths, Settings(), "big") == first
    (big,) = [model for model in list_models(paths, Settings()) if model.name == "big"]
    assert big.num_bytes == 10


def test_what_was_added_and_what_others_have_is_found_by_name(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = tmp_path / "mine.gguf", tmp_path / "sha256-1"
    for file in (mine, theirs):
        file.write_bytes(b"GGUF")
    Shelf(paths.shelf).note_added(mine)
    monkeypatch.setattr(local, "find_elsewhere", lambda: [Elsewhere("qwen3:4b", theirs, "Ollama")])
    assert names(paths) == ["clever", "mine", "qwen3:4b"]
    assert find_model(paths, Settings(), "mine") == mine
    assert find_model(paths, Settings(), "qwen3:4b") == theirs
    sources = {model.name: model.source for model in list_models(paths, Settings())}
    assert (sources["mine"], sources["qwen3:4b"]) == ("added", "Ollama")


def test_one_file_is_listed_once_and_one_name_means_one_file(paths: Paths, tmp_path: Path) -> None:
    again = tmp_path / "again.gguf"
    again.symlink_to(paths.models / "clever.gguf")
    other = tmp_path / "elsewhere" / "clever.gguf"
    other.parent.mkdir()
    other.write_bytes(b"GGUF")
    for path in (again, other):
        Shelf(paths.shelf).note_added(path)
    assert names(paths) == ["clever", "clever (2)"]
    assert find_model(paths, Settings(), "clever (2)") == other


def test_only_what_was_brought_may_be_deleted(paths: Paths) -> None:
    def can(name: str) -> tuple[bool, bool]:
        (model,) = [each for each in list_models(paths, Settings()) if each.name == name]
        return model.is_ours, model.can_be_removed

    assert can("clever") == (False, False)
    Shelf(paths.shelf).note_brought(Brought("clever.gguf", "a/b", "Q4_0"))
    assert can("clever") == (True, True)
    assert can("starter") == (False, False)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_no_file_is_no_model(paths: Paths) -> None:
    os.mkfifo(paths.models / "pipe.gguf")
    (paths.models / "folder.gguf").mkdir()
    (paths.models / "gone.gguf").symlink_to(paths.models / "nowhere.gguf")
    names = [each.name for each in list_models(paths, Settings())]
    # What is wrong with a link to nowhere can be said.
    assert names == ["starter", "clever", "gone"]
