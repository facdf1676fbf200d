"""The graphics processors of this machine, as its own programs and files tell of them.

Nothing of a vendor is imported: that takes seconds, and may end the process.
"""

import json
import platform
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 5.0
DEVICES = Path("/sys/class/drm")
MAKERS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}

Ask = Callable[[Sequence[str]], str]
"""What a program writes; empty when there is none, or when it fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """`memory_bytes` None and `driver` empty: nothing here tells."""

    name: str
    maker: str
    memory_bytes: int | None = None
    driver: str = ""


def ask_program(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, errors="replace", timeout=PATIENCE_S
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


def look_at_gpus(
    ask: Ask = ask_program, devices: Path = DEVICES, system: str = platform.system()
) -> list[Gpu]:
    """What each vendor's own program says, and else what the system's files say."""
    if system == "Darwin":
        return _of_macos(ask)
    found = _of_nvidia(ask) + _of_amd(ask)
    known = {gpu.maker for gpu in found}
    return found + [gpu for gpu in _of_files(devices) if gpu.maker not in known]


def why_not_used(gpus: Sequence[Gpu]) -> str:
    """Why the processor computes although there are these; empty where there are none."""
    if not gpus:
        return ""
    names = ", ".join(gpu.name for gpu in gpus)
    missing = [gpu.name for gpu in gpus if gpu.maker == "NVIDIA" and not gpu.driver]
    driver = f" (and {', '.join(missing)} has no driver that answers)" if missing else ""
    return (
        f"{names} is not used{driver}: this build of llama.cpp computes on the processor only, and"
        " there is no backend for graphics processors in it yet"
    )


def _of_nvidia(ask: Ask) -> list[Gpu]:
    fields = "name,memory.total,driver_version"
    told = ask(("nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"))
    gpus = []
    for line in told.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 3:
            name, mebibytes, driver = parts
            size = int(mebibytes) * 2**20 if mebibytes.isdecimal() else None
            gpus.append(Gpu(name=name, maker="NVIDIA", memory_bytes=size, driver=driver))
    return gpus


def _of_amd(ask: Ask) -> list[Gpu]:
    wanted = ("--showproductname", "--showmeminfo", "vram", "--showdriverversion")
    told = ask(("rocm-smi", *wanted, "--json"))
    gpus = []
    try:
        cards = json.loads(told) if told else {}
    except (ValueError, RecursionError):
        return []
    if not isinstance(cards, dict):
        return []
    whole = cards.get("system")
    driver = str(whole.get("Driver version", "")) if isinstance(whole, dict) else ""
    for name, card in cards.items():
        if not name.startswith("card") or not isinstance(card, dict):
            continue
        size = str(card.get("VRAM Total Memory (B)", ""))
        title = str(card.get("Card Series") or card.get("Card series") or "AMD graphics")
        memory = int(size) if size.isdecimal() else None
        gpus.append(Gpu(name=title, maker="AMD", memory_bytes=memory, driver=driver))
    return gpus


def _of_macos(ask: Ask) -> list[Gpu]:
    told = ask(("system_profiler", "SPDisplaysDataType", "-json"))
    try:
        displays = json.loads(told)["SPDisplaysDataType"] if told else []
    except (ValueError, KeyError, TypeError, RecursionError):
        return []
    return [
        Gpu(
            name=str(each.get("sppci_model", "graphics")),
            maker="Apple" if "apple" in str(each.get("spdisplays_vendor", "")).lower() else "other",
            driver=str(each.get("spdisplays_mtlgpufamilysupport", "")),
        )
        for each in displays
        if isinstance(each, dict)
    ]


def _of_files(devices: Path) -> list[Gpu]:
    """Linux: each card is a folder here, whose vendor is a number of the PCI bus."""
    gpus = []
    for card in sorted(devices.glob("card[0-9]*")):
        if "-" in card.name:
            continue  # one of its sockets
        maker = MAKERS.get(_line(card / "device" / "vendor"))
        if maker is None:
            continue
        driver = (card / "device" / "driver").resolve().name
        size = _line(card / "device" / "mem_info_vram_total")
        gpus.append(
            Gpu(
                name=f"{maker} graphics",
                maker=maker,
                memory_bytes=int(size) if size.isdecimal() else None,
                driver="" if driver == "driver" else driver,
            )
        )
    return gpus


def _line(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
