"""The kinds of models that this backend runs; every other one is refused by its name."""

from engine.backends.torch.architecture import Architecture
from engine.backends.torch.architectures.gemma2 import GEMMA2
from engine.backends.torch.architectures.gemma3 import GEMMA3
from engine.backends.torch.architectures.granite import GRANITE
from engine.backends.torch.architectures.llama import LLAMA
from engine.backends.torch.architectures.phi3 import PHI3
from engine.backends.torch.architectures.qwen2 import QWEN2
from engine.backends.torch.architectures.qwen3 import QWEN3
from engine.errors import ModelUnsupported

ARCHITECTURES = (LLAMA, QWEN2, QWEN3, GEMMA2, GEMMA3, PHI3, GRANITE)


def find_gguf(name: str, model: str) -> Architecture:
    """By `general.architecture`. Raises ModelUnsupported."""
    for each in ARCHITECTURES:
        if name in each.gguf_names:
            return each
    known = ", ".join(found for each in ARCHITECTURES for found in each.gguf_names)
    raise ModelUnsupported(
        f"{model} is of the kind {name or 'unknown'}, and the torch engine runs {known}: use"
        " --backend llama for it."
    )


def find_class(name: str, model: str) -> Architecture:
    """By the class in `architectures` of a config.json. Raises ModelUnsupported."""
    for each in ARCHITECTURES:
        if name in each.classes:
            return each
    known = ", ".join(found for each in ARCHITECTURES for found in each.classes)
    raise ModelUnsupported(
        f"{model} is of the kind {name or 'unknown'}, and the torch engine runs {known}: bring a"
        " GGUF file of this model, which llama.cpp may run."
    )
