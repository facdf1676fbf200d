"""What a file is, remembered until it changes."""

from pathlib import Path

import pytest

from app.models import look as room
from app.models.look import Looks, look_at
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


def test_a_sound_file_has_its_measures(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny-Q8_0.gguf")
    look = look_at(path)
    assert (look.problem, look.architecture, look.quantization) == ("", "llama", "Q8_0")
    assert look.shape is not None and look.shape.trained_context == 1024


def test_what_cannot_run_has_the_reason(tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_bytes(b"<html>")
    assert "is not a GGUF model" in look_at(tmp_path / "page.gguf").problem
    assert "There is no model file" in look_at(tmp_path / "gone.gguf").problem
    wonder = look_at(write_tiny_model(tmp_path / "new.gguf", "wonder"))
    assert "is of a kind (wonder) that this build of llama.cpp does not know" in wonder.problem
    assert wonder.shape is None


def test_an_adapter_says_what_it_is_made_for_also_when_it_is_remembered(tmp_path: Path) -> None:
    facts = {"general.base_model.0.name": "Tiny 1B"}
    path = write_tiny_adapter(tmp_path / "pirate.gguf", facts=facts)
    look = Looks(tmp_path / "memo.json").at(path)
    assert (look.is_adapter, look.architecture, look.base_model) == (True, "llama", "Tiny 1B")
    assert (look.problem, look.shape, look.num_bytes) == ("", None, path.stat().st_size)
    assert Looks(tmp_path / "memo.json").at(path) == look
    path.write_bytes(path.read_bytes()[:-9])
    assert "cut off" in look_at(path).problem and look_at(path).is_adapter


def test_a_file_is_read_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    memo = tmp_path / "memo.json"
    first = Looks(memo).at(path)
    read: list[Path] = []

    def counted(path: Path) -> room.Look:
        read.append(path)
        return look_at(path)

    monkeypatch.setattr(room, "look_at", counted)
    assert Looks(memo).at(path) == first
    assert read == []
    path.write_bytes(path.read_bytes()[:-5000])
    assert "cut off" in Looks(memo).at(path).problem
    assert read == [path]


@pytest.mark.parametrize("text", ["{", "[]", '{"made_by": 1}', '{"files": {}}'])
def test_a_memo_that_cannot_be_understood_is_made_anew(tmp_path: Path, text: str) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    memo = tmp_path / "memo.json"
    memo.write_text(text)
    assert Looks(memo).at(path).problem == ""
    assert '"tiny' not in text and str(path) in memo.read_text()
