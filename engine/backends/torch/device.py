"""Where the torch engine computes, and why not somewhere better."""

from dataclasses import dataclass

import torch

MIN_CAPABILITY = (8, 0)
"""What Triton makes kernels for, and the first cards that compute in bfloat16."""

_SLOW = "which is slow: --backend llama is faster on a processor."


@dataclass(frozen=True, slots=True)
class Device:
    """`notice` is what the user should know of it, or empty."""

    device: torch.device
    dtype: torch.dtype
    name: str
    notice: str = ""


def choose_device() -> Device:
    """The first NVIDIA card that will do, else the processor with the reason."""
    reason = _why_no_card()
    if reason:
        return Device(
            torch.device("cpu"),
            torch.float32,
            torch.backends.cpu.get_cpu_capability(),
            f"{reason}, so the torch engine runs on the processor, without its kernels, {_SLOW}",
        )
    return Device(torch.device("cuda", 0), torch.bfloat16, torch.cuda.get_device_name(0))


def _why_no_card() -> str:
    if torch.version.cuda is None:
        return f"This build of torch ({torch.__version__}) is one without CUDA"
    if not torch.cuda.is_available():
        return "No NVIDIA card can be used"
    capability = torch.cuda.get_device_capability(0)
    if capability < MIN_CAPABILITY:
        major, minor = capability
        return (
            f"The card {torch.cuda.get_device_name(0)} has compute capability {major}.{minor}, and"
            f" {MIN_CAPABILITY[0]}.{MIN_CAPABILITY[1]} is needed"
        )
    return ""
