"""Whether a model fits, and its weights as numbers, too; asked before any of them is read."""

import psutil
import torch

from engine.backends.torch.device import Device
from engine.backends.torch.opened_model import OpenedModel
from engine.backends.torch.placement import Placement
from engine.errors import OutOfMemory

_SPARE_BYTES = 500_000_000
"""For what a step needs beside weights and KV, and for whoever else is at work."""


def choose_placement(
    model: OpenedModel, device: Device, kv_bytes: int, num_cells: int, beside_bytes: int = 0
) -> Placement:
    """On a card packed weights stay packed. The processor has no kernels for them, so they become
    numbers where there is room, or each step would unpack them anew. Raises OutOfMemory."""
    source = model.source
    free = _free_bytes(device.device) - beside_bytes
    packed = source.num_bytes + kv_bytes
    unpacked = source.num_parameters * device.dtype.itemsize + kv_bytes
    if device.device.type == "cpu" and unpacked + _SPARE_BYTES <= free:
        return Placement(device=device.device, dtype=device.dtype, keeps_packed=False)
    if packed > free:
        raise OutOfMemory(
            f"{model.info.name} needs {packed / 1e9:,.1f} GB of memory with a context of"
            f" {num_cells:,} tokens, and {free / 1e9:,.1f} GB are free: choose a smaller model or a"
            " smaller context, or close other programs."
        )
    return Placement(device=device.device, dtype=device.dtype, keeps_packed=True)


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)
