"""What keeping KV beside the cells costs in processor time, where it brings nothing.

One chat that grows in memory of its own, never left and never opened again: everything that is
exported, summed and written of it is in vain. Both sides read and write the same tokens, so
the ratio of their processor time is the cost.

One engine is both sides: where a context happens to lie in memory makes it faster or slower than
another by more than what is measured here.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from app.bench.compare import Bar, Figure, Pair, interleave, show_pair
from app.bench.machine import machine
from app.bench.options import add_context, add_effort, add_model
from app.bench.our_engine import model_of
from app.bench.report import Report
from app.bench.workload import SEED, Generation, Prompts
from engine.config import DEFAULT_KV_DISK_BYTES, EngineConfig
from engine.errors import HomeError
from engine.kv.segment import Belonging
from engine.loading import LoadedModel, load
from engine.request import RequestOptions

COLUMNS = ("kept", "processor_s", "written_mb", "bar", "is_met")
BAR = Bar(at_most=1.02)
OPTIONS = RequestOptions(belonging=Belonging(owner="bench", is_durable=True))
RAM_BYTES = 1_000_000_000
# Between two turns somebody reads the answer; meanwhile what came to rest is stored.
PAUSE_S = 0.3


@dataclass(frozen=True, slots=True)
class Spent:
    """By the whole process on one chat, and what went to the disk meanwhile."""

    processor_s: float
    num_bytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--first", type=int, default=1500, metavar="N", help="tokens of turn 1")
    parser.add_argument("--more", type=int, default=120, metavar="N", help="tokens of later turns")
    parser.add_argument("--answer", type=int, default=40, metavar="N", help="tokens of an answer")
    parser.add_argument("--turns", type=int, default=5, metavar="N")
    # Threads that wait for one another are busy all the while, and hide a cost of some percent.
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    add_context(parser)
    add_effort(parser, pairs=6, minutes=8.0)


def run(options: argparse.Namespace) -> Report:
    model = model_of(options.model)
    facts = machine(model=model.stem, context=options.context, threads=options.threads)
    lengths = [options.first] + [options.more] * (options.turns - 1)
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        config = EngineConfig(
            model_path=model,
            context_tokens=options.context,
            threads=options.threads,
            kv_folder=Path(folder),
        )
        with closing(load(config)) as loaded:

            def measured(ram_bytes: int) -> Callable[[int], Spent]:
                def spent(number: int) -> Spent:
                    prompts = Prompts(loaded.tokenizer, SEED + number)
                    turns = [Generation(prompts.prompt(num), options.answer) for num in lengths]
                    return runner.run(grow(loaded, turns, ram_bytes))

                return spent

            runner.run(_disk_is_used(loaded))
            keeping, plain = measured(RAM_BYTES), measured(0)
            keeping(-1), plain(-1)
            pairs, figures = interleave(
                keeping,
                plain,
                ratio,
                minutes=options.minutes,
                min_pairs=options.pairs,
                on_pair=show_pair(),
            )
    return Report("tiers", facts, rows(pairs, figures["processor_s"]), COLUMNS)


async def _disk_is_used(loaded: LoadedModel) -> None:
    """The disk is attached as soon as the model's file has been read once."""
    while not (usage := loaded.engine.kv_usage).disk_budget:
        if usage.notice:
            raise HomeError(usage.notice)
        await asyncio.sleep(0.05)


async def grow(loaded: LoadedModel, turns: Sequence[Generation], ram_bytes: int) -> Spent:
    """One chat from an empty memory to its end, with what is stored of it while nobody asks."""
    await loaded.engine.forget_all()
    await loaded.engine.limit_kv(ram_bytes, DEFAULT_KV_DISK_BYTES)
    await asyncio.sleep(PAUSE_S)
    written, began = loaded.engine.kv_usage.bytes_written, process_time()
    token_ids: list[int] = []
    for turn in turns:
        token_ids += turn.prompt
        with loaded.engine.submit(list(token_ids), turn.params, OPTIONS) as stream:
            async for output in stream:
                token_ids += output.token_ids
        await asyncio.sleep(PAUSE_S)
    spent = process_time() - began
    return Spent(spent, loaded.engine.kv_usage.bytes_written - written)


def ratio(pair: Pair[Spent]) -> dict[str, float]:
    return {"processor_s": pair.ours.processor_s / pair.theirs.processor_s}


def rows(pairs: Sequence[Pair[Spent]], figure: Figure) -> list[dict[str, Any]]:
    """The last one is what is judged: their ratio."""
    return [
        _row("in memory and on the disk", [pair.ours for pair in pairs]),
        _row("not at all", [pair.theirs for pair in pairs]),
        {
            "kept": "ratio",
            "processor_s": figure.median,
            "interval": [figure.low, figure.high],
            "pairs": len(pairs),
            "bar": str(BAR),
            "is_met": BAR.is_met(figure),
        },
    ]


def _row(name: str, spent: Sequence[Spent]) -> dict[str, Any]:
    return {
        "kept": name,
        "processor_s": median(one.processor_s for one in spent),
        "written_mb": median(one.num_bytes for one in spent) / 1e6,
    }
