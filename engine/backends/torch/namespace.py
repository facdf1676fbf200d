"""The name of all that changes the KV of the torch engine, beside the model and its tokens."""

from hashlib import blake2b

import torch

from engine.backends.torch.decoder_config import DecoderConfig
from engine.backends.torch.device import Device
from engine.backends.torch.kv_kind import KVKind
from engine.backends.torch.placement import Placement

KV_LAYOUT = 1
"""To be raised when KV is arranged or computed in another way, so that nobody reads the old one."""

# By this no name of another backend's can be the same, whatever its facts are.
_PERSON = b"inglenook torch"
_STRETCHED = ("dynamic", "longrope")


def kv_namespace(
    config: DecoderConfig,
    placement: Placement,
    device: Device,
    kind: KVKind,
    max_positions: int,
) -> bytes:
    """32 bytes that differ wherever the KV of the same tokens of a model file may differ."""
    facts: list[object] = [KV_LAYOUT, torch.__version__, torch.version.cuda, device.name]
    facts += [placement.dtype, placement.keeps_packed, kind.name]
    facts += [config.layers, config.ropes, config.query_scale]
    # How they turn depends on how long a sequence may become.
    if any(rope.scaling.kind in _STRETCHED for rope in config.ropes):
        facts.append(max_positions)
    return blake2b(repr(facts).encode(), digest_size=32, person=_PERSON).digest()
