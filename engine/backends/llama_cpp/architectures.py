"""Which kinds of models this build of llama.cpp knows.

It has no list of them that can be asked for, but it says first of all whether it knows the kind of
a file, so it is shown one that has nothing else.
"""

import os
import struct
import tempfile
from functools import lru_cache
from pathlib import Path

from engine.backends.llama_cpp.library import bindings, collected_log

_KEY = b"general.architecture"


@lru_cache(maxsize=256)
def is_known_architecture(name: str) -> bool:
    """Takes a millisecond. Raises OSError where no file can be made."""
    text = name.encode()
    entry = struct.pack("<Q", len(_KEY)) + _KEY + struct.pack("<IQ", 8, len(text)) + text
    content = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry
    with tempfile.TemporaryDirectory(prefix="inglenook-") as folder:
        path = Path(folder) / "empty.gguf"
        path.write_bytes(content)
        params = bindings.llama_model_default_params()
        params.vocab_only = True
        params.n_gpu_layers = 0
        with collected_log() as log:
            pointer = bindings.llama_model_load_from_file(os.fsencode(path), params)
            if pointer:
                bindings.llama_model_free(pointer)
                return True
            return not any(f"unknown model architecture: '{name}'" in line for line in log)
