"""Which model files are here, and which of them a name means."""

from pathlib import Path

import pytest

from app.models import local
from app.models.local import find_model, list_models
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


def test_a_missing_starter_leaves_the_others(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    without_starter(monkeypatch)
    assert [model.name for model in list_models(paths, Settings())] == ["clever"]
