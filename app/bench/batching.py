"""Continuous against static batching, on requests of mixed lengths that all come at once.

    static      |aaaa....|eeeeeeee|     a group waits for its longest answer
                |bbbbbbbb|ff......|
    continuous  |aaaaeeeeeeee|          whoever has ended makes room at once
                |bbbbbbbbff|

Static batching exists in this file only. It runs on the same engine and computes nothing for
those who have ended, so it is better here than where it is really done.
"""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from time import perf_counter
from typing import Any

import numpy as np

from app.bench.compare import Pair, interleave, show_pair
from app.bench.machine import machine
from app.bench.options import add_context, add_effort, add_model
from app.bench.our_engine import OurEngine, Stream, model_of
from app.bench.report import Report
from app.bench.workload import SEED, Generation, Prompts
from engine.config import EngineConfig

PROMPT_TOKENS = (20, 600)
COLUMNS = ("batching", "makespan_s", "mean_latency_s", "p95_latency_s", "tokens_per_second")

Follow = Callable[[Generation, float], Awaitable[Stream]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds from the common start to the end of each request, and the tokens of all."""

    ends: tuple[float, ...]
    num_tokens: int

    @property
    def makespan(self) -> float:
        return max(self.ends)

    @property
    def p95(self) -> float:
        return float(np.percentile(self.ends, 95))

    @property
    def rate(self) -> float:
        return self.num_tokens / self.makespan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--requests", type=int, default=24, metavar="N")
    parser.add_argument("--running", type=int, default=4, metavar="N", help="computed at once")
    parser.add_argument("--longest", type=int, default=256, metavar="N", help="longest answer")
    add_context(parser)
    add_effort(parser, pairs=5, minutes=8.0)


def run(options: argparse.Namespace) -> Report:
    model = model_of(options.model)
    facts = machine(
        model=model.stem,
        context=options.context,
        requests=options.requests,
        running=options.running,
    )
    config = EngineConfig(
        model_path=model, context_tokens=options.context, max_running=options.running
    )
    with OurEngine(config) as engine:
        prompts = Prompts(engine.tokenizer)

        def measured(way: Callable[..., Any]) -> Callable[[int], Outcome]:
            # New prompts each time, of the same lengths: the cache helps neither side.
            def outcome(number: int) -> Outcome:
                work = mixed(prompts, options.requests, options.longest)
                found: Outcome = engine.run(way(engine.follow, work, options.running))
                return found

            return outcome

        pairs, figures = interleave(
            measured(run_continuous),
            measured(run_static),
            ratios,
            minutes=options.minutes,
            min_pairs=options.pairs,
            on_pair=show_pair(),
        )
    rows: list[dict[str, Any]] = [
        row("continuous", [pair.ours for pair in pairs]),
        row("static", [pair.theirs for pair in pairs]),
        {"batching": "continuous / static"}
        | {name: figure.median for name, figure in figures.items()}
        | {
            "pairs": len(pairs),
            "intervals": {name: [figure.low, figure.high] for name, figure in figures.items()},
        },
    ]
    return Report("batching", facts, rows, COLUMNS, ("batching", "makespan_s"))


def mixed(prompts: Prompts, num: int, longest: int) -> list[Generation]:
    """Lengths from a fixed seed: short and long answers and prompts in no order."""
    generator = np.random.default_rng(SEED)
    shortest = min(16, longest)
    return [
        Generation(
            prompts.prompt(int(generator.integers(PROMPT_TOKENS[0], PROMPT_TOKENS[1] + 1))),
            int(generator.integers(shortest, longest + 1)),
        )
        for _ in range(num)
    ]


async def run_continuous(follow: Follow, work: Sequence[Generation], running: int) -> Outcome:
    """All at once: the engine's own scheduler keeps `running` of them going."""
    began = perf_counter()
    streams = await asyncio.gather(*(follow(generation, began) for generation in work))
    return outcome_of(streams)


async def run_static(follow: Follow, work: Sequence[Generation], running: int) -> Outcome:
    """Group after group; the next one starts when the longest of this one has ended."""
    began = perf_counter()
    streams: list[Stream] = []
    for first in range(0, len(work), running):
        group = work[first : first + running]
        streams += await asyncio.gather(*(follow(generation, began) for generation in group))
    return outcome_of(streams)


def outcome_of(streams: Sequence[Stream]) -> Outcome:
    return Outcome(
        tuple(stream.ended for stream in streams), sum(len(stream.arrivals) for stream in streams)
    )


def ratios(pair: Pair[Outcome]) -> dict[str, float]:
    return {
        "makespan_s": pair.ours.makespan / pair.theirs.makespan,
        "mean_latency_s": fmean(pair.ours.ends) / fmean(pair.theirs.ends),
        "p95_latency_s": pair.ours.p95 / pair.theirs.p95,
        "tokens_per_second": pair.ours.rate / pair.theirs.rate,
    }


def row(name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "batching": name,
        "makespan_s": median(one.makespan for one in outcomes),
        "mean_latency_s": median(fmean(one.ends) for one in outcomes),
        "p95_latency_s": median(one.p95 for one in outcomes),
        "tokens_per_second": median(one.rate for one in outcomes),
    }
