"""Which backend runs a model: the one that was asked for, or the one that suits file and machine.

Neither library is imported before it is needed: both take a while.
"""

import os
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path

from engine.backends.base import Backend
from engine.config import EngineConfig
from engine.errors import ModelUnsupported

# How often a thread looks for the others before it sleeps, by GOMP_SPINCOUNT. With both of 2 cores
# busy a token of SmolLM2 took 2.1 s on 2 threads with libgomp's own 300,000, and 0.31 s with this.
SPIN_COUNT = "100"

NO_TORCH = (
    "The torch engine needs torch, which is not installed: install the extra [cuda] with"
    " `inglenook cuda install`, or use --backend llama."
)


def open_backend(config: EngineConfig, *, beside_bytes: int = 0) -> Backend:
    """`beside_bytes`: memory that something else will take. Raises the ModelError that says why
    the model cannot be used."""
    if backend_for(config.backend, config.model_path) == "torch":
        return _open_torch(config, beside_bytes)
    return _open_llama(config, beside_bytes)


def backend_for(asked: str, model_path: Path) -> str:
    """The kind of backend that runs this model where `asked`, one of BACKENDS, was asked for."""
    if asked != "auto":
        return asked
    # Also where there is a card: nobody is to be the first to run our kernels without asking.
    return "torch" if is_safetensors(model_path) else "llama"


def draft_bytes(config: EngineConfig) -> int:
    """What a draft model will take in all, without loading its weights. Raises a ModelError."""
    if is_safetensors(config.model_path):
        return sum(file.stat().st_size for file in config.model_path.glob("*.safetensors"))
    from engine.backends.llama_cpp.backend import draft_bytes

    return draft_bytes(config)


def is_safetensors(path: Path) -> bool:
    """Whether this is a folder with a model of transformers in it."""
    return path.is_dir() and any(path.glob("*.safetensors"))


def may_have_card() -> bool:
    """Whether torch and NVIDIA's driver are there, so that it is worth asking torch for a card."""
    if find_spec("torch") is None:
        return False
    driver = "nvcuda" if os.name == "nt" else "cuda"
    return os.path.exists("/dev/nvidiactl") or find_library(driver) is not None


def _open_llama(config: EngineConfig, beside_bytes: int) -> Backend:
    from engine.backends.llama_cpp.backend import LlamaBackend

    return LlamaBackend(config, beside_bytes=beside_bytes)


def _open_torch(config: EngineConfig, beside_bytes: int) -> Backend:
    if find_spec("torch") is None:
        raise ModelUnsupported(NO_TORCH)
    if not may_have_card():
        # Read when libgomp is loaded: without effect where llama.cpp has done that already.
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
    from engine.backends.torch.backend import TorchBackend

    return TorchBackend(config, beside_bytes=beside_bytes)
