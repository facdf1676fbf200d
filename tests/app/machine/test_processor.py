"""What the processor can do, and what our build of llama.cpp makes of it."""

import subprocess
from dataclasses import replace
from typing import Any

import pytest

from app.machine import processor as module
from app.machine.processor import (
    build_words,
    features_of,
    how_the_library_ends,
    look_at_processor,
    used_features,
)
from tests.fakes_machine import PROCESSOR

TOLD = "CPU : SSE3 = 1 | AVX2 = 1 | AVX512 = 0 | LLAMAFILE = 1 | OPENMP = 1 | REPACK = 1 | "


def test_llama_cpps_own_words_are_understood() -> None:
    assert used_features(TOLD) == ("SSE3", "AVX2")


def test_the_systems_words_are_understood_on_every_kind_of_machine() -> None:
    assert features_of(frozenset({"pni", "avx2", "avx512_vnni"})) == ("SSE3", "AVX2", "AVX512_VNNI")
    assert features_of(frozenset({"asimd", "asimddp"})) == ("NEON", "ARM_FMA", "DOTPROD")
    assert features_of(frozenset({"hw.optional.arm.feat_i8mm"})) == ("MATMUL_INT8",)
    assert features_of(frozenset()) == ()


def test_what_the_build_leaves_unused_is_named() -> None:
    processor = replace(PROCESSOR, has=("AVX", "AVX2", "AVX512"))
    assert processor.unused == ("AVX512",)
    assert "and not AVX512, which this processor has" in processor.about_build
    assert PROCESSOR.about_build.endswith("all that it has kernels for here")


def test_the_chosen_one_of_several_builds_is_named() -> None:
    assert "the variant zen4" in replace(PROCESSOR, variant="zen4").about_build


def test_a_build_is_named_by_what_can_be_looked_up() -> None:
    assert build_words("0.5.0-dev", "0c1e570-dirty") == "0.5.0-dev (0c1e570)"
    assert build_words("0.5.0-dev", "0c1e570") == "0.5.0-dev (0c1e570)"
    assert build_words("0.5.0-dev", "") == "0.5.0-dev"
    assert "dirty" not in look_at_processor().build


def test_this_processor_runs_the_build_that_is_here() -> None:
    processor = look_at_processor()
    assert processor.name and processor.build
    assert set(processor.uses) <= set(processor.has) or not processor.has


@pytest.mark.parametrize(
    ("code", "errors", "words"),
    [
        (0, "", ""),
        (-4, "", "an instruction that this processor does not have"),
        (0xC000001D, "", "an instruction that this processor does not have"),
        (-11, "", "signal 11"),
        (1, "Traceback\nOSError: libgomp.so.1 is missing\n", "OSError: libgomp.so.1 is missing"),
        (1, "", "code 1"),
    ],
)
def test_how_a_process_ends_that_loads_the_library_is_told(
    monkeypatch: pytest.MonkeyPatch, code: int, errors: str, words: str
) -> None:
    def run(*_: Any, **__: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], code, "", errors)

    monkeypatch.delitem(module.sys.modules, module.LIBRARY, raising=False)
    monkeypatch.setattr(module.subprocess, "run", run)
    assert how_the_library_ends() == words


def test_a_library_that_is_loaded_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import engine.backends.llama_cpp.library  # noqa: F401

    monkeypatch.setattr(module.subprocess, "run", lambda *_, **__: pytest.fail("it was tried"))
    assert how_the_library_ends() == ""
