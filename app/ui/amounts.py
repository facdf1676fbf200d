"""Figures in words."""


def gigabytes(num_bytes: float) -> str:
    """In decimal units, as disks and files are sold and shown."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if num_bytes >= size:
            value = num_bytes / size
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.2g} {unit}"
    return f"{num_bytes:.0f} bytes"


def milliseconds(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"


def turns(number: int, kind: str) -> str:
    return f"{kind} turn" if number == 1 else f"{number:,} {kind} turns"
