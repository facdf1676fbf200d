"""Whether a model fits this machine, how fast it would be, and why: before it is downloaded."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

import psutil

from app.amounts import bytes_in_words
from app.memory import SPARE_BYTES
from app.models.pace import Pace
from engine.backends.llama_cpp.model_shape import ModelShape
from engine.config import EngineConfig

COMFORT = 0.8
"""What takes less than this share of the free memory leaves room for other programs."""
ASKED_TOKENS = 512
"""The time to the first token is told for a question of so many."""
CONTEXTS = (65536, 32768, 16384, 8192, 4096, 2048)


class Verdict(StrEnum):
    FITS = "fits well"
    TIGHT = "tight"
    NOT = "does not fit"


@dataclass(frozen=True, slots=True)
class Room:
    """The memory of this machine, in bytes. `available`: as if the loaded model were gone."""

    available: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Sizes in bytes. The speeds are None as long as the pace of the machine is not known: tokens
    a second behind half of the context, and seconds until a question of ASKED_TOKENS is read."""

    verdict: Verdict
    why: str
    needed_bytes: int
    available_bytes: int
    context_tokens: int
    kv_type: str
    tokens_per_s: float | None = None
    first_token_s: float | None = None


def room_now(given_back: int = 0) -> Room:
    """`given_back`: what the loaded model takes, which goes before another one comes."""
    memory = psutil.virtual_memory()
    return Room(min(memory.total, memory.available + given_back), memory.total)


def fit(shape: ModelShape, config: EngineConfig, room: Room, pace: Pace | None = None) -> Fit:
    """How the model would do if it were loaded so. Raises InvalidParams."""
    needed = shape.memory_bytes(config)
    context = config.num_cells(shape.trained_context)
    kv_type = shape.context.kv.choose(config.kv_type)
    verdict, why = _verdict(needed, context, room)
    behind = min(context, shape.trained_context) // 2
    return Fit(
        verdict=verdict,
        why=why,
        needed_bytes=needed,
        available_bytes=room.available,
        context_tokens=context,
        kv_type=kv_type,
        tokens_per_s=None if pace is None else 1 / pace.write_s(shape, behind, kv_type),
        first_token_s=None if pace is None else pace.read_s(shape, ASKED_TOKENS),
    )


def _verdict(needed: int, context: int, room: Room) -> tuple[Verdict, str]:
    takes = f"with a context of {context:,} tokens it takes {bytes_in_words(needed)}"
    if needed > room.total - SPARE_BYTES:
        return Verdict.NOT, f"{takes}, and this machine has {bytes_in_words(room.total)} in all"
    free = f"{bytes_in_words(room.available)} are free"
    if needed > room.available - SPARE_BYTES:
        return Verdict.NOT, f"{takes}, and {free}: close other programs, or take a smaller one"
    if needed > COMFORT * (room.available - SPARE_BYTES):
        return Verdict.TIGHT, f"{takes} of the {free.removesuffix(' are free')} that are free"
    return Verdict.FITS, f"{takes}, and {free}"


def size_verdict(num_bytes: int, room: Room) -> Verdict:
    """About, for weights of which nothing else is known: a tenth more for the context."""
    needed = 1.1 * num_bytes
    if needed > room.available - SPARE_BYTES:
        return Verdict.NOT
    comfortable = COMFORT * (room.available - SPARE_BYTES)
    return Verdict.TIGHT if needed > comfortable else Verdict.FITS


def largest_fitting(
    choices: Iterable[tuple[str, ModelShape]], config: EngineConfig, room: Room
) -> str:
    """The name of the largest of these that fits; empty where none does."""
    fitting = [
        (shape.num_bytes, name)
        for name, shape in choices
        if shape.memory_bytes(config) <= room.available - SPARE_BYTES
    ]
    return max(fitting, default=(0, ""))[1]


def fitting_context(shape: ModelShape, config: EngineConfig, room: Room) -> int | None:
    """The largest usual context with which the model fits, if a smaller one than wanted does."""
    wanted = config.num_cells(shape.trained_context)
    for tokens in CONTEXTS:
        if tokens < wanted:
            smaller = replace(config, context_tokens=tokens)
            if shape.memory_bytes(smaller) <= room.available - SPARE_BYTES:
                return tokens
    return None
