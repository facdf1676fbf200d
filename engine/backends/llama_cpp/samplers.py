"""llama.cpp's own samplers, over our logits: the reference of tests and benchmarks.

Nothing that answers goes through them.
"""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from engine.backends.llama_cpp.library import bindings
from engine.backends.llama_cpp.vocabulary import Vocabulary

_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class LlamaSampler:
    """One sampler or a chain of them. Owned by whoever made it."""

    def __init__(self, pointer: Any) -> None:
        assert pointer, "llama.cpp made no sampler of this"
        self._pointer = pointer
        finalize(self, bindings.llama_sampler_free, pointer)

    @classmethod
    def of(cls, name: str, *arguments: Any) -> "LlamaSampler":
        """By the end of `llama_sampler_init_NAME`, with what it takes."""
        return cls(getattr(bindings, f"llama_sampler_init_{name}")(*arguments))

    @classmethod
    def chain(cls, *steps: Sequence[Any]) -> "LlamaSampler":
        """Several, each as `(name, *arguments)`."""
        pointer = bindings.llama_sampler_chain_init(bindings.llama_sampler_chain_default_params())
        for name, *arguments in steps:
            # The chain frees what it is given.
            step = getattr(bindings, f"llama_sampler_init_{name}")(*arguments)
            bindings.llama_sampler_chain_add(pointer, step)
        return cls(pointer)

    @classmethod
    def grammar(cls, vocabulary: Vocabulary, gbnf: str) -> "LlamaSampler":
        """What leaves possible the tokens that a GBNF grammar allows."""
        pointer = bindings.llama_sampler_init_grammar(vocabulary.pointer, gbnf.encode(), b"root")
        return cls(pointer)

    def accept(self, token_id: int) -> None:
        """Let it know what was chosen."""
        bindings.llama_sampler_accept(self._pointer, token_id)

    def apply(self, logits: NDArray[np.float32]) -> Mapping[int, float]:
        """The logits that it leaves, by id; what it dropped is not there."""
        kept, _ = self.run(LlamaCandidates(logits))
        return {
            int(each["id"]): float(each["logit"]) for each in kept if np.isfinite(each["logit"])
        }

    def choose(self, logits: NDArray[np.float32]) -> tuple[int, Mapping[int, float]]:
        """The token that the last sampler of a chain drew, and the probabilities it drew from."""
        kept, selected = self.run(LlamaCandidates(logits))
        return int(kept[selected]["id"]), {
            int(each["id"]): float(each["p"]) for each in kept if each["p"] > 0
        }

    def run(self, candidates: "LlamaCandidates") -> tuple[NDArray[Any], int]:
        """What is left, and the index there of what was drawn (-1: nothing); only once for each."""
        array = candidates.array
        bindings.llama_sampler_apply(self._pointer, ctypes.byref(array))
        address = ctypes.cast(array.data, ctypes.c_void_p).value
        if address == candidates.data.ctypes.data:
            return candidates.data[: array.size], array.selected
        # It put its own memory in the place of ours, which it may use again.
        assert address is not None
        raw = (ctypes.c_char * (array.size * _DATA.itemsize)).from_address(address)
        return np.frombuffer(raw, _DATA).copy(), array.selected


class LlamaCandidates:
    """A row of logits in the form in which llama.cpp works on it; of these ids, or of all."""

    def __init__(self, logits: NDArray[np.float32], token_ids: Sequence[int] | None = None) -> None:
        self.data = np.empty(len(logits), _DATA)
        self.data["id"] = np.arange(len(logits)) if token_ids is None else token_ids
        self.data["logit"] = logits
        self.data["p"] = 0
        self.array = bindings.llama_token_data_array(
            data=self.data.ctypes.data_as(bindings.llama_token_data_p),
            size=len(self.data),
            selected=-1,
            sorted=False,
        )


def gbnf_of_schema(schema: str) -> str:
    """A JSON Schema as llama.cpp's Python bindings put it into a grammar."""
    # Not before the library was loaded by us.
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    gbnf: str = json_schema_to_gbnf(schema)
    return gbnf
