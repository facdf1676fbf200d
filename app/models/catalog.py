"""Good models by size, with what they are for: what can be known before anything is downloaded."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.backends.llama_cpp.kv_type import KVShape
from engine.backends.llama_cpp.model_shape import ContextShape, ModelShape

_FILE = Path(__file__).with_name("catalog.toml")
PERMISSIVE = ("Apache-2.0", "MIT", "BSD-3-Clause")
"""Licences under which anybody may use a model for anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogModel:
    """One entry of catalog.toml, which says what its fields are. `sizes`: bytes, about right, by
    quantisation, the smallest first; `tied`: the table of words is the last layer, too."""

    name: str
    title: str
    repo: str
    licence: str
    purpose: str
    languages: str
    thinks: bool
    parameters: float
    active: float | None = None
    context: int
    layers: int
    kv_heads: int
    head_size: int
    width: int
    feed_forward: int
    words: int
    tied: bool
    sizes: Mapping[str, float]
    mmproj: float = 0.0
    """What it reads pictures with, in billions of bytes; it comes along. 0: it reads text alone."""

    @property
    def usual(self) -> str:
        """The quantisation that is offered first."""
        return "Q4_K_M" if "Q4_K_M" in self.sizes else next(iter(self.sizes))

    def num_bytes(self, quantization: str) -> int:
        """All that is downloaded."""
        return round((self.sizes[quantization] + self.mmproj) * 1e9)

    def shape(self, quantization: str) -> ModelShape:
        """About right, as the sizes are."""
        weight_bytes = round(self.sizes[quantization] * 1e9)
        num_parameters = round(self.parameters * 1e9)
        table = 0 if self.tied else self.width * self.words
        num_multiplied = (round(self.active * 1e9) if self.active else num_parameters) - table
        kv = KVShape(
            self.layers * self.kv_heads * 2 * self.head_size, frozenset([self.head_size]), True
        )
        return ModelShape(
            num_bytes=self.num_bytes(quantization),
            num_parameters=num_parameters,
            multiplied={weight_type(quantization): num_multiplied},
            read_bytes=round(weight_bytes * num_multiplied / num_parameters),
            num_layers=self.layers,
            trained_context=self.context,
            context=ContextShape(
                width=self.width,
                widest_layer=self.feed_forward,
                num_words=self.words,
                window_tokens=0,
                kv=kv,
            ),
        )


def weight_type(quantization: str) -> str:
    """The type of most weights of such a file, by its name in ggml."""
    name = quantization.removeprefix("UD-")
    for ending in ("_XL", "_L", "_M", "_S"):
        if "_K_" in name:
            name = name.removesuffix(ending)
    return {"Q4": "Q4_K"}.get(name, name)


@cache
def catalog() -> tuple[CatalogModel, ...]:
    with _FILE.open("rb") as file:
        return tuple(CatalogModel(**entry) for entry in tomllib.load(file)["model"])


def in_catalog(name: str) -> CatalogModel | None:
    wanted = name.casefold()
    return next((each for each in catalog() if each.name == wanted), None)
