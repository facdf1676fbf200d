"""A file gets its name once, whatever the file system can do."""

import os
from pathlib import Path

import pytest

from engine.backends.llama_cpp.own_part import give_name, own_part, sweep_parts
from engine.errors import UsageError


@pytest.fixture(params=["links", "no links"])
def part(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    if request.param == "no links":
        monkeypatch.setattr(os, "link", refuse)
    part = own_part(tmp_path / "a.gguf")
    part.write_text("new")
    return part


def test_it_gets_its_name(part: Path, tmp_path: Path) -> None:
    give_name(part, tmp_path / "a.gguf")
    assert [file.name for file in tmp_path.iterdir()] == ["a.gguf"]
    assert (tmp_path / "a.gguf").read_text() == "new"


def test_a_file_that_is_there_is_never_replaced(part: Path, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_text("old")
    with pytest.raises(UsageError, match="already: choose another name"):
        give_name(part, tmp_path / "a.gguf")
    assert (tmp_path / "a.gguf").read_text() == "old" and part.exists()


def test_what_lives_is_not_swept_nor_what_is_called_otherwise(part: Path, tmp_path: Path) -> None:
    others = [tmp_path / name for name in ("a.gguf.part", "a.gguf.x1.part", "a.gguf.1.parts")]
    for file in others:
        file.touch()
    sweep_parts(tmp_path / "a.gguf")
    assert sorted(tmp_path.iterdir()) == sorted([part, *others])


def test_a_folder_that_is_not_there_has_nothing_to_sweep(tmp_path: Path) -> None:
    sweep_parts(tmp_path / "nowhere" / "a.gguf")
