"""A model whose file has been understood and whose weights are still to be read."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.backends.base import ModelInfo
from engine.backends.torch.decoder_config import DecoderConfig
from engine.backends.torch.decoder_loader import DecoderLoader
from engine.backends.torch.placement import Placement
from engine.backends.torch.weight_source import WeightSource
from engine.tokenizer import Tokenizer

Progress = Callable[[int, int], None]
"""Hears how many bytes of how many are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedModel:
    """`info` has everything but what its KV takes."""

    info: ModelInfo
    config: DecoderConfig
    source: WeightSource
    tokenizer: Tokenizer
    has_head_norms: bool
    loader: Callable[[Placement, Progress], DecoderLoader]
