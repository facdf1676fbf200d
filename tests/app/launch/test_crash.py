"""A crash is named by what ended the process, what it was doing, and what the log says."""

import signal
import sys

import pytest

from app.launch.child import End
from app.launch.crash import Crash, Suspect, crash_of, signal_name, telling_lines
from app.launch.link import Doing

LOADING = Doing(model="Qwen 7B", is_loading=True)
WRITING = Doing(page=True, model="Qwen 7B", answering="writing")
IDLE = Doing(page=True, model="Qwen 7B")

SEGV_LOG = """Fatal Python error: Segmentation fault

Current thread 0x00007f8b2c7fe6c0 (most recent call first):
  File "/opt/in/engine/backends/llama_cpp/context.py", line 235 in decode
  File "/opt/in/engine/engine.py", line 181 in step

Thread 0x00007f8b4a5f9740 (most recent call first):
  File "/usr/lib/python3.11/selectors.py", line 468 in select
"""
STATE_LOG = """Fatal Python error: Segmentation fault

Current thread 0x00007f8b2c7fe6c0 (most recent call first):
  File "/opt/in/engine/backends/llama_cpp/state_blob.py", line 20 in put

Thread 0x00007f8b4a5f9740 (most recent call first):
  File "/usr/lib/python3.11/selectors.py", line 468 in select
"""
ASSERT = "/src/llama.cpp/ggml/src/ggml.c:1672: GGML_ASSERT(n_dims >= 1 && n_dims <= 4) failed"
CUDA_LOG = """CUDA error: an illegal memory access was encountered
  current device: 0, in function ggml_backend_cuda_synchronize at /src/ggml-cuda.cu:2500
"""


def crash(code: int, doing: Doing = IDLE, log: str = "", fault: str = "") -> Crash:
    return crash_of(End(code=code, doing=doing, log=log, fault=fault))


@pytest.mark.parametrize(
    ("code", "doing", "log", "suspect", "words"),
    [
        (-11, LOADING, SEGV_LOG, Suspect.MODEL, "SIGSEGV) while it loaded the model Qwen 7B"),
        (-11, WRITING, SEGV_LOG, Suspect.MODEL, "while Qwen 7B was writing"),
        (-11, WRITING, STATE_LOG, Suspect.STORED, "a fault in memory (SIGSEGV)"),
        (-11, IDLE, "", Suspect.APP, "stopped by a fault in memory (SIGSEGV)."),
        (-11, Doing(), "", Suspect.APP, "(SIGSEGV) while it started"),
        (-7, WRITING, "", Suspect.MODEL, "file is changed or cut off while it is used, while"),
        (-7, Doing(), "", Suspect.APP, "a fault in memory (SIGBUS) while it started"),
        (-6, WRITING, ASSERT, Suspect.MODEL, "a failed check in a library (SIGABRT)"),
        (-4, LOADING, "", Suspect.PROCESSOR, "does not have (SIGILL)"),
        (-9, WRITING, "", Suspect.OUTSIDE, "something outside of it that ended it (SIGKILL) while"),
        (-9, WRITING, "ggml: failed to allocate", Suspect.MEMORY, "probably because memory ran"),
        (0xC0000017, WRITING, "", Suspect.MEMORY, "too little memory (STATUS_NO_MEMORY)"),
        (-6, WRITING, "terminate called after throwing an instance of 'std::bad_alloc'",
         Suspect.MEMORY, "too little memory (SIGABRT)"),
        (-6, WRITING, CUDA_LOG, Suspect.GPU, "a fault of the graphics card (SIGABRT)"),
        (0xC0000005, WRITING, "", Suspect.MODEL, "(SIGSEGV) while Qwen 7B was writing"),
        (0xC000001D, LOADING, "", Suspect.PROCESSOR, "SIGILL"),
    ],
)  # fmt: skip
def test_the_sentence_names_cause_and_suspect(
    code: int, doing: Doing, log: str, suspect: Suspect, words: str
) -> None:
    found = crash(code, doing, log)
    assert found.suspect is suspect
    assert words in found.sentence
    assert found.sentence.startswith("Inglenook was stopped by ")
    assert found.sentence.endswith(".") and found.sentence.count(". ") == 0


@pytest.mark.parametrize(
    ("code", "suspect"), [(-9, Suspect.MEMORY), (-11, Suspect.MODEL), (1, Suspect.MODEL)]
)
def test_memory_that_ran_out_explains_a_process_that_was_ended_and_no_other(
    code: int, suspect: Suspect
) -> None:
    found = crash_of(End(code=code, doing=WRITING, memory_ran_out=True))
    assert found.suspect is suspect
    assert ("probably because memory ran out" in found.sentence) == (suspect is Suspect.MEMORY)


@pytest.mark.parametrize(
    ("fault", "suspect", "words"),
    [
        ("MemoryError", Suspect.MEMORY, "too little memory"),
        ("RuntimeError: CUDA error", Suspect.GPU, "a fault of the graphics card"),
        ("ValueError", Suspect.MODEL, "an error that nobody expected (ValueError)"),
    ],
)
def test_an_engine_that_died_by_an_exception_is_named_as_well(
    fault: str, suspect: Suspect, words: str
) -> None:
    found = crash(0, WRITING, fault=fault)
    assert found.suspect is suspect and words in found.sentence


def test_an_error_of_python_is_named_by_its_kind_alone() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/a.py", line 3, in f\nKeyError: "my secret"\n'
    )
    found = crash(1, IDLE, log)
    assert "(KeyError)" in found.sentence
    assert found.lines == ("  /a.py:3 f", "KeyError")


def test_the_lines_hold_frames_and_failed_checks_and_nothing_that_was_said() -> None:
    log = f"The user said: my secret\n{SEGV_LOG}my secret\n{ASSERT}\nValueError: my secret\n"
    lines = telling_lines(log)
    assert "my secret" not in "\n".join(lines)
    assert lines[0] == "Fatal Python error: Segmentation fault"
    assert "  /opt/in/engine/backends/llama_cpp/context.py:235 decode" in lines
    assert ASSERT in lines and "ValueError" in lines


def test_a_long_log_keeps_its_head_and_its_end() -> None:
    log = SEGV_LOG + '  File "/x.py", line 1 in f\n' * 500 + ASSERT
    lines = telling_lines(log)
    assert len(lines) <= 30
    assert lines[0].startswith("Fatal Python error") and lines[-1] == ASSERT


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
def test_every_signal_has_its_name() -> None:
    assert signal_name(-signal.SIGSEGV) == "SIGSEGV"
    assert signal_name(-999) == "signal 999"
    assert signal_name(0) == signal_name(3) == ""


def test_a_crash_survives_being_kept() -> None:
    found = crash(-11, WRITING, SEGV_LOG)
    assert Crash.from_json(found.as_json()) == found
