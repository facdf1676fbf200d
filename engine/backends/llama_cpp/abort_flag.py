"""Let a running computation end early, from any thread and without the interpreter's lock."""

import ctypes
import sys
from typing import Any

from engine.backends.llama_cpp.library import bindings


class AbortFlag:
    """One byte that llama.cpp looks at after every node of its graph.

    What it calls is C's `strlen`, whose result is not zero when the text is not empty: no Python
    runs, and nothing waits for the GIL. It must live as long as its context.
    """

    def __init__(self, context: Any) -> None:
        self._text = ctypes.create_string_buffer(2)
        library = "ucrtbase" if sys.platform == "win32" else None
        strlen = ctypes.CDLL(library).strlen
        bindings.llama_set_abort_callback(
            context,
            ctypes.cast(strlen, bindings.ggml_abort_callback),
            ctypes.cast(self._text, ctypes.c_void_p),
        )

    def hoist(self) -> None:
        """The running step, or else the next one, returns early."""
        self._text[0] = b"\x01"

    def strike(self) -> None:
        """Steps run to their end again."""
        self._text[0] = b"\x00"
