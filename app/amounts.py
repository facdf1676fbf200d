"""Figures in words."""


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def turns(number: int, kind: str) -> str:
    return f"{kind} turn" if number == 1 else f"{number:,} {kind} turns"


def milliseconds(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def bytes_in_words(num_bytes: float) -> str:
    """In decimal units, as disks and files are sold and shown."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        value = num_bytes / size
        # From here on it is rounded to at least one of this unit.
        if value >= 0.9995:
            digits = 1 if value < 9.95 else 0
            return f"{value:,.{digits}f}".removesuffix(".0") + f" {unit}"
    return "1 byte" if num_bytes == 1 else f"{num_bytes:.0f} bytes"
