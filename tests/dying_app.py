"""The app, in which somebody has sent a message; once, it dies over the answer.

DIES_BY in the environment says how. It happens in llama.cpp's place, in the engine's thread, when
the file `die` is in the home; `died` is left behind.
"""

import asyncio
import ctypes
import mmap
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import app.run
from app.cli import main
from app.services import Services

HOME = Path(os.environ["INGLENOOK_HOME"])
MARK = HOME / "died"
CARD = "CUDA error: an illegal memory access was encountered"


def fault_in_memory(bindings: Any) -> None:
    bindings.llama_n_ctx(ctypes.c_void_p(8))


def failed_check(bindings: Any) -> None:
    """As ggml's own: it prints its place and aborts."""
    abort = bindings._lib.ggml_abort
    abort.restype, abort.argtypes = None, [ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p]
    abort(b"/src/ggml.c", 1672, b"GGML_ASSERT(n_dims <= 4) failed")


def unknown_instruction(_: Any) -> None:
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # None of this name, neither on x86 nor on ARM.
    page.write(bytes.fromhex("0f0b0000"))
    ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


def killed(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def limit_memory() -> None:
    """From now on the system gives little more than there is."""
    import resource

    held = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (held + 2**24, held + 2**24))


def no_memory(_: Any) -> None:
    """C++ asks for more than the system gives, and nobody catches what it throws."""
    limit_memory()
    new = ctypes.CDLL("libstdc++.so.6")["_Znwm"]
    new.argtypes, new.restype = [ctypes.c_size_t], ctypes.c_void_p
    new(2**30)


def no_memory_in_python(_: Any) -> None:
    limit_memory()
    bytearray(2**30)


def fault_of_the_card(_: Any) -> NoReturn:
    """As ggml's CUDA part says it."""
    os.write(2, f"{CARD}\n  current device: 0, in function synchronize at x.cu:25\n".encode())
    os.abort()


def error_of_the_card(_: Any) -> NoReturn:
    """As torch says it."""
    raise RuntimeError(CARD)


WAYS: dict[str, Callable[[Any], object]] = {
    "SIGSEGV": fault_in_memory,
    "SIGABRT": failed_check,
    "SIGILL": unknown_instruction,
    "SIGKILL": killed,
    "memory": no_memory,
    "memory in Python": no_memory_in_python,
    "card": fault_of_the_card,
    "error of the card": error_of_the_card,
    "never": lambda _: None,
}


class DyingServices(Services):
    def start(self) -> None:
        super().start()
        if not MARK.exists():
            self.talk = asyncio.ensure_future(self.say("Tell me a long story about the sea."))

    async def say(self, text: str) -> None:
        from engine.backends.llama_cpp.library import bindings

        await self.chat_model()
        decode = bindings.llama_decode

        def decode_or_die(*arguments: Any) -> Any:
            if not MARK.exists() and (HOME / "die").exists():
                MARK.touch()
                WAYS[os.environ["DIES_BY"]](bindings)
            return decode(*arguments)

        bindings.llama_decode = decode_or_die
        sampling = {"temperature": 0, "max_tokens": 4000, "ignore_eos": True, "loop_guard": False}
        conversation = await self.conversations.create(sampling=sampling)
        await self.jobs.send(conversation.conversation_id, text)


app.run.Services = DyingServices  # type: ignore[misc]
sys.exit(main(sys.argv[1:]))
