"""Model files with fewer bits: complete or not there at all."""

import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from engine.backends.llama_cpp import quantize as module
from engine.backends.llama_cpp.file_types import FILE_TYPES, size_as
from engine.backends.llama_cpp.own_part import own_part
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
    with pytest.raises(ModelDamaged, match=r"short.gguf is cut off .*bring it again"):
        quantize(part, tmp_path / "new.gguf", "Q8_0", num_threads=1)
    assert not list(tmp_path.glob("new*"))


def test_a_file_that_cannot_be_loaded_is_named_and_no_other_type_is_advised(
    tmp_path: Path,
) -> None:
    source = write_tiny_model(tmp_path / "odd.gguf", "wonder")
    with pytest.raises(ModelError, match=r"^odd.gguf cannot run here") as found:
        quantize(source, tmp_path / "new.gguf", "Q8_0", num_threads=1)
    assert "another type" not in str(found.value)
    assert list(tmp_path.iterdir()) == [source]


def test_two_writers_of_one_file_do_not_meet_and_the_first_keeps_the_name(
    tiny: Path, tmp_path: Path
) -> None:
    target = tmp_path / "new.gguf"
    other = tmp_path / f"new.gguf.{os.getppid()}.part"
    other.write_bytes(b"what another one writes")

    def come_between(done: int, total: int) -> None:
        if done == total:
            target.write_bytes(b"of the other one")

    with pytest.raises(UsageError, match="There is a file .*new.gguf already"):
        quantize(tiny, target, "Q8_0", num_threads=1, progress=come_between)
    assert target.read_bytes() == b"of the other one"
    assert sorted(tmp_path.iterdir()) == sorted([target, tiny, other])


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
    own_part(tmp_path / "new.gguf").touch()
    discard(tmp_path / "new.gguf")
    discard(tmp_path / "new.gguf")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_one_left_goes_at_the_next_run(tiny: Path, tmp_path: Path) -> None:
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    left = tmp_path / f"new.gguf.{killed.pid}.part"
    of_another_file = tmp_path / f"renew.gguf.{killed.pid}.part"
    for file in (left, of_another_file):
        file.touch()
    quantize(tiny, tmp_path / "new.gguf", "Q8_0", num_threads=1)
    assert not left.exists() and of_another_file.exists()
