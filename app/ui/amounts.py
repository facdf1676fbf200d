"""Figures in words."""


def milliseconds(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"


def turns(number: int, kind: str) -> str:
    return f"{kind} turn" if number == 1 else f"{number:,} {kind} turns"
