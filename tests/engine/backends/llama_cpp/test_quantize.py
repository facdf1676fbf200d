"""Model files with fewer bits: complete or not there at all."""

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from engine.backends.llama_cpp import quantize as module
from engine.backends.llama_cpp.file_types import FILE_TYPES, size_as
from engine.backends.llama_cpp.quantize import discard, quantize
from engine.backends.llama_cpp.weights import read_weights
from engine.errors import ModelDamaged, ModelError, ModelNotFound, UsageError
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf")


@pytest.mark.parametrize("name", FILE_TYPES)
def test_every_type_can_be_made_and_is_no_larger_than_was_said(
    tiny: Path, tmp_path: Path, name: str
) -> None:
    target = tmp_path / "new.gguf"
    made = quantize(tiny, target, name, num_threads=1)
    assert made.bytes_before == tiny.stat().st_size
    assert made.bytes_after == target.stat().st_size <= size_as(read_weights(tiny), name)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["new.gguf", "tiny.gguf"]


def test_the_weights_have_the_type_that_was_asked_for(tiny: Path, tmp_path: Path) -> None:
    quantize(tiny, tmp_path / "new.gguf", "Q8_0", num_threads=1)
    assert read_weights(tmp_path / "new.gguf").main_type == "Q8_0"


def test_progress_goes_to_the_last_tensor(tiny: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    quantize(
        tiny,
        tmp_path / "new.gguf",
        "Q8_0",
        num_threads=1,
        progress=lambda done, total: steps.append((done, total)),
    )
    assert steps == sorted(steps) and steps[-1] == (len(read_weights(tiny).tensors),) * 2


def test_what_is_quantised_already_is_refused_unless_that_is_wanted(
    tiny: Path, tmp_path: Path
) -> None:
    once = tmp_path / "once.gguf"
    quantize(tiny, once, "Q8_0", num_threads=1)
    with pytest.raises(UsageError, match=r"once.gguf is quantised already \(Q8_0\).*--again"):
        quantize(once, tmp_path / "twice.gguf", "Q4_0", num_threads=1)
    quantize(once, tmp_path / "twice.gguf", "Q4_0", num_threads=1, allow_again=True)
    assert (tmp_path / "twice.gguf").stat().st_size < once.stat().st_size


def test_wrong_use_is_one_sentence_and_makes_nothing(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no type 'Q9'; the types are F32, F16"):
        quantize(tiny, tmp_path / "new.gguf", "Q9", num_threads=1)
    with pytest.raises(UsageError, match="a file .*tiny.gguf already"):
        quantize(tiny, tiny, "Q8_0", num_threads=1)
    with pytest.raises(UsageError, match="no folder"):
        quantize(tiny, tmp_path / "nowhere" / "new.gguf", "Q8_0", num_threads=1)
    with pytest.raises(ModelNotFound):
        quantize(tmp_path / "missing.gguf", tmp_path / "new.gguf", "Q8_0", num_threads=1)
    assert list(tmp_path.iterdir()) == [tiny]


def test_a_disk_without_room_is_told_with_the_figures(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 9, 1))
    with pytest.raises(UsageError, match=r"needs about 0.0 GB and 0.0 GB are free"):
        quantize(tiny, tmp_path / "new.gguf", "Q8_0", num_threads=1)


def test_a_file_that_breaks_off_is_one_sentence_and_leaves_nothing(
    tiny: Path, tmp_path: Path
) -> None:
    part = tmp_path / "short.gguf"
    part.write_bytes(tiny.read_bytes()[:-10_000])
    with pytest.raises(ModelError):
        quantize(part, tmp_path / "new.gguf", "Q8_0", num_threads=1)
    assert not list(tmp_path.glob("new*"))


def test_a_file_that_cannot_be_opened_again_does_not_get_its_name(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise ModelDamaged(f"{path.name} is damaged")

    monkeypatch.setattr(module, "LlamaModel", refuse)
    with pytest.raises(ModelDamaged):
        quantize(tiny, tmp_path / "new.gguf", "Q8_0", num_threads=1)
    assert list(tmp_path.iterdir()) == [tiny]


def test_what_was_begun_can_be_removed_and_need_not_be_there(tmp_path: Path) -> None:
    (tmp_path / "new.gguf.part").touch()
    discard(tmp_path / "new.gguf")
    discard(tmp_path / "new.gguf")
    assert list(tmp_path.iterdir()) == []
