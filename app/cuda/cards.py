"""Which NVIDIA cards are here, and which build of torch their driver can run."""

import sys
from collections.abc import Sequence

from app.machine.gpu import Gpu
from app.version import VERSION

WHEELS = "https://download.pytorch.org/whl/"
# The first driver of each CUDA: NVIDIA's release notes of the toolkit, table 3 (Linux; Windows' are
# a few versions later). CUDA 12 runs on every driver since 525 by minor version compatibility.
BUILDS = ((580, "cu130"), (525, "cu126"))
OWN_INDEX = "none"
"""In place of an address: torch comes from where everything else comes from."""


def usable(gpus: Sequence[Gpu]) -> list[Gpu]:
    return [gpu for gpu in gpus if gpu.maker == "NVIDIA" and _build_for(gpu)]


def why_useless(gpus: Sequence[Gpu], system: str = sys.platform) -> str:
    """Why an installation would not help here, in a sentence; empty where it would."""
    if system == "darwin":
        return (
            "It would not help on a Mac: it is for NVIDIA cards, and there are no drivers of"
            " theirs for macOS."
        )
    if usable(gpus):
        return ""
    cards = [gpu for gpu in gpus if gpu.maker == "NVIDIA"]
    least = BUILDS[-1][0]
    if not cards:
        others = ", ".join(gpu.name for gpu in gpus)
        found = f"only {others}" if others else "no graphics card"
        return f"It would not help: it is for NVIDIA cards, and {found} was found here."
    card = cards[0]
    if not card.driver.partition(".")[0].isdecimal():
        return (
            f"It would not help yet: {card.name} has no driver that answers; install NVIDIA's, in"
            f" version {least} or newer."
        )
    return (
        f"It would not help yet: {card.name} has the driver {card.driver}, and torch needs {least}"
        " or newer: update the driver."
    )


NOT_YET = (
    f"Inglenook {VERSION} computes on the card only where --backend torch asks for it, and no card"
    " has run that yet."
)
"""What an installation does not bring."""


def torch_index(gpus: Sequence[Gpu], asked: str = "") -> str:
    """PyTorch's own, with the build for the oldest driver here; empty: none of its own."""
    if asked:
        return "" if asked == OWN_INDEX else asked
    builds = [_build_for(gpu) for gpu in usable(gpus)]
    return WHEELS + (min(builds) if builds else BUILDS[-1][1])


def _build_for(gpu: Gpu) -> str:
    major = gpu.driver.partition(".")[0]
    if not major.isdecimal():
        return ""
    return next((name for least, name in BUILDS if int(major) >= least), "")
