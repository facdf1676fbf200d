"""A processor that is too old is told in one sentence, before anything needs a newer one."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from app import processor

OLD = (
    "processor\t: 0\nflags\t\t: fpu sse sse2 pni cx16 lahf_lm\n\nprocessor\t: 1\nflags\t: sse4_2\n"
)
NEW = "flags\t\t: fpu sse2 pni ssse3 cx16 sse4_1 sse4_2 popcnt avx lahf_lm\n"


def test_this_processor_is_new_enough() -> None:
    assert processor.why_too_old() == ""


def test_the_sentence_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "missing_instructions", lambda: ["sse4_1", "sse4_2"])
    sentence = processor.why_too_old()
    assert "sse4_1, sse4_2" in sentence and "newer machine" in sentence


def test_the_flags_of_the_first_processor_count(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(OLD)
    assert processor.missing_flags(file) == ["ssse3", "sse4_1", "sse4_2", "popcnt"]
    file.write_text(NEW)
    assert processor.missing_flags(file) == []


def test_where_no_flags_are_told_nothing_is_missed(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    assert processor.missing_flags(file) == []
    file.write_text("processor : 0\nFeatures : fp asimd\n")
    assert processor.missing_flags(file) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the file is Linux's")
def test_the_processor_and_the_file_about_it_agree() -> None:
    if platform.machine() == "x86_64":
        assert processor._missing_bits() == processor.missing_flags(processor.CPUINFO) == []


def test_another_kind_of_processor_is_never_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(processor, "_missing_bits", lambda: ["sse4_2"])
    assert processor.missing_instructions() == []


def test_asking_needs_nothing_that_an_old_processor_could_die_of() -> None:
    asked = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, app.processor; assert app.processor.why_too_old() == '';"
            "assert not {'numpy', 'llama_cpp', 'psutil'} & set(sys.modules)",
        ],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert asked.returncode == 0, asked.stderr
