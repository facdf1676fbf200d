"""The llama.cpp shared library: loaded once, quiet, with its log kept for error sentences.

Every other file of this folder takes the bindings from here, because the environment must be
right before the library is loaded.
"""

import ctypes
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import finalize

# A failed assertion inside ggml would otherwise start a debugger, which prints for seconds.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")
# OpenMP keeps its own spin count (300,000): SmolLM2 decoded on 2 threads of 2 cores at 101
# tokens/s with it, at 92 with 100,000, 90 with 10,000, 82 with 1,000 and 37 with 100. On busy
# cores it is the number of threads that has to change, and the thread tuner sees to that.

import llama_cpp.llama_cpp as bindings  # noqa: E402

__all__ = [
    "ModelHandle",
    "bindings",
    "build_name",
    "collected_log",
    "heard_log",
    "log_callback",
    "processor_kind",
]

logger = logging.getLogger(__name__)

LIBRARIES = Path(bindings.__file__).parent / "lib"

_WARN, _ERROR, _CONTINUED = 3, 4, 5
_recent_lines: deque[str] = deque(maxlen=64)


_listeners: list[Callable[[str], None]] = []


def _on_log(level: int, message: bytes, _user_data: Any) -> None:
    for listener in _listeners:
        listener(message.decode("utf-8", "replace"))
    if level in (_WARN, _ERROR):
        line = message.decode("utf-8", "replace").rstrip()
        _recent_lines.append(line)
        logger.debug("%s", line)


# ctypes frees a callback that nobody holds, and the library would call into nothing.
log_callback = bindings.llama_log_callback(_on_log)


def _start() -> None:
    bindings.llama_log_set(log_callback, ctypes.c_void_p(0))
    # A build with one library per processor kind registers none of them by itself.
    registered = bindings._lib.ggml_backend_reg_count
    registered.restype = ctypes.c_size_t
    if registered() == 0:
        load_all = bindings._lib.ggml_backend_load_all_from_path
        load_all.argtypes, load_all.restype = [ctypes.c_char_p], None
        load_all(os.fsencode(LIBRARIES))
    bindings.llama_backend_init()


_start()


class ModelHandle:
    """A loaded model, freed when nobody holds this any more.

    A text may still be tokenized in some thread when the engine is closed.
    """

    def __init__(self, pointer: Any) -> None:
        self.pointer = pointer
        # At exit the engine thread may be in the middle of a step: the system frees it then.
        finalize(self, bindings.llama_model_free, pointer).atexit = False


def build_name() -> tuple[str, str, str]:
    """Its version, its commit, and what of the processor it uses."""
    commit = bindings._lib.ggml_commit
    commit.restype = ctypes.c_char_p
    texts = (bindings.llama_version(), commit(), bindings.llama_print_system_info())
    version, hash_, processor = (text.decode("utf-8", "replace") for text in texts)
    return version, hash_, processor


def processor_kind() -> str:
    """The kind of processor whose library was chosen at the start, by llama.cpp's name for it.

    Empty where there is but one, which is what a build for the machine at hand has.
    """
    stem = "ggml-cpu-"
    variants = LIBRARIES.glob(f"*{stem}*")
    chosen = [file.stem.partition(stem)[2] for file in variants if _is_loaded(file)]
    return chosen[0] if chosen else ""


def _is_loaded(library: Path) -> bool:
    if sys.platform == "win32":
        return bool(ctypes.windll.kernel32.GetModuleHandleW(str(library)))
    try:
        ctypes.CDLL(str(library), os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


@contextmanager
def heard_log(listener: Callable[[str], None]) -> Iterator[None]:
    """All that the library logs inside the block goes to `listener`, in whatever thread it is."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def collected_log() -> Iterator[deque[str]]:
    """The warnings and errors that the library logs inside the block, oldest first."""
    _recent_lines.clear()
    yield _recent_lines
