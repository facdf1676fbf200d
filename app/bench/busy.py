"""`decode --busy`: what is left of the speed when another program takes half of the cores.

    tokens    before | change | while the other program runs | change | after
    judged           |        | from 32 tokens on            |        | from 32 tokens on

llama.cpp waits for its slowest thread at every layer, so one busy core makes both late. Every
trial has a twin in which the other program only waits: the same tokens of the twin are the idle
speed, because writing slows down as a text grows.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any, Self

from app.amounts import counted
from app.bench.compare import Bar, Pair, figure_of
from app.bench.machine import Others, machine
from app.bench.our_engine import OurEngine, model_of
from app.bench.report import Report
from app.bench.workload import Generation, Prompts
from engine.config import EngineConfig
from engine.cores import usable_cores

WINDOW = 8
SETTLED_AFTER = 32
BEFORE, DURING, AFTER = 96, 160, 160
DISTURBED_CORES = 0.25
"""A trial in which other programs took more than this is left out, as long as any is left."""
BURN = "import sys; sys.stdin.readline()\nwhile True: pass"
BARS = {"busy": Bar(at_least=0.55), "after": Bar(at_least=0.9)}
COLUMNS = ("measure", "tokens_per_second", "ratio", "low", "high", "trials", "bar", "passed")


class Burner:
    """Processes that wait for `start` and then never rest, ended with the `with` block."""

    def __init__(self, count: int) -> None:
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
            )
            for _ in range(count)
        ]

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(process.pid for process in self._processes)

    def start(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()

    def stop(self) -> None:
        for process in self._processes:
            process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for process in self._processes:
            process.communicate()


@dataclass(frozen=True, slots=True)
class Trial:
    """Tokens a second in windows of eight tokens, and what other programs took meanwhile."""

    before: tuple[float, ...]
    during: tuple[float, ...]
    after: tuple[float, ...]
    others_cores: float

    @property
    def speeds(self) -> dict[str, float]:
        """What is judged of either phase."""
        skipped = SETTLED_AFTER // WINDOW
        return {"busy": speed(self.during[skipped:]), "after": speed(self.after[skipped:])}


def speed(windows: Sequence[float]) -> float:
    """Tokens a second over all of these windows: a slow one weighs as long as it took."""
    return len(windows) / sum(1.0 / rate for rate in windows)


def run(options: argparse.Namespace) -> Report:
    model = model_of(options.model)
    threads = options.threads or usable_cores()
    taken = max(1, threads // 2)
    facts = machine(model=model.stem, threads=threads, context=options.context, busy_cores=taken)
    config = EngineConfig(model_path=model, context_tokens=options.context, threads=options.threads)
    pairs: list[Pair[Trial]] = []
    ends = perf_counter() + 60 * options.minutes
    with OurEngine(config) as engine:
        prompts = Prompts(engine.tokenizer)
        engine.generate(prompts.generations(1, options.prompt, options.tokens))
        while len(undisturbed(pairs)) < options.pairs and (perf_counter() < ends or not pairs):
            prompt = prompts.prompt(options.prompt)
            trial = measure(engine, prompt, taken)
            # Another prompt of the same length, or the twin would be read from the cache.
            pairs.append(Pair(trial, measure(engine, prompts.prompt(options.prompt), 0)))
            progress(len(pairs), pairs[-1])
    clean = undisturbed(pairs) or pairs
    num_disturbed = len(pairs) - len(undisturbed(pairs))
    notes = [
        f"{counted(len(pairs), 'trial')}, {num_disturbed} of them disturbed by other"
        f" programs{'' if undisturbed(pairs) else ', which are shown for want of better ones'}."
    ]
    rows = [*summary(clean), *table_of_windows(clean)]
    return Report("decode --busy", facts, rows, COLUMNS, ("measure", "tokens_per_second"), notes)


def undisturbed(pairs: Sequence[Pair[Trial]]) -> list[Pair[Trial]]:
    return [
        pair
        for pair in pairs
        if max(pair.ours.others_cores, pair.theirs.others_cores) <= DISTURBED_CORES
    ]


def measure(engine: OurEngine, prompt: tuple[int, ...], num_burners: int) -> Trial:
    """One generation, during which the burner starts and ends."""
    generation = Generation(prompt, BEFORE + DURING + AFTER)

    async def follow(burner: Burner) -> list[float]:
        arrivals: list[float] = []
        with engine.engine.submit(list(prompt), generation.params) as stream:
            async for output in stream:
                arrivals.extend([perf_counter()] * len(output.token_ids))
                if len(arrivals) == BEFORE:
                    burner.start()
                elif len(arrivals) == BEFORE + DURING:
                    burner.stop()
        return arrivals

    engine.forget()
    with Burner(num_burners) as burner, Others(burner.pids) as others:
        arrivals = engine.run(follow(burner))
    return Trial(
        rates(arrivals[:BEFORE]),
        rates(arrivals[BEFORE - 1 : BEFORE + DURING]),
        rates(arrivals[BEFORE + DURING - 1 :]),
        others.cores,
    )


def rates(arrivals: Sequence[float]) -> tuple[float, ...]:
    """Tokens a second in each full window."""
    ends = arrivals[::WINDOW]
    return tuple(WINDOW / (end - start) for start, end in zip(ends, ends[1:], strict=False))


def summary(pairs: Sequence[Pair[Trial]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, bar in BARS.items():
        idle = [pair.theirs.speeds[name] for pair in pairs]
        found = [pair.ours.speeds[name] for pair in pairs]
        figure = figure_of([one / other for one, other in zip(found, idle, strict=True)])
        rows.append({"measure": f"idle, as {name}", "tokens_per_second": median(idle)})
        rows.append(
            {
                "measure": f"{name}, from {SETTLED_AFTER} tokens on",
                "tokens_per_second": median(found),
                "ratio": figure.median,
                "low": figure.low,
                "high": figure.high,
                "trials": figure.num,
                "bar": str(bar),
                "passed": bar.is_met(figure),
            }
        )
    return rows


def table_of_windows(pairs: Sequence[Pair[Trial]]) -> list[dict[str, Any]]:
    rows = []
    for phase in ("before", "during", "after"):
        columns = zip(*(getattr(pair.ours, phase) for pair in pairs), strict=True)
        for number, values in enumerate(columns):
            first = number * WINDOW
            rows.append(
                {
                    "measure": f"{phase}, tokens {first + 1}-{first + WINDOW}",
                    "tokens_per_second": median(values),
                    "trials": len(values),
                }
            )
    return rows


def progress(number: int, pair: Pair[Trial]) -> None:
    shares = ", ".join(
        f"{name} {speed:.0f} of {pair.theirs.speeds[name]:.0f}"
        for name, speed in pair.ours.speeds.items()
    )
    print(
        f"trial {number}: {shares} tokens/s; others {pair.ours.others_cores:.2f} and"
        f" {pair.theirs.others_cores:.2f} cores",
        file=sys.stderr,
        flush=True,
    )
