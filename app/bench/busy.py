"""`decode --busy`: what is left of the speed when another program takes half of the cores.

    tokens   before | change | while the other program runs | change | after
    judged   all    |        | from 32 tokens on            |        | from 32 tokens on

llama.cpp waits for its slowest thread at every layer, so one busy core makes both late.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from app.bench.compare import Bar, figure_of
from app.bench.machine import Others, machine
from app.bench.our_engine import OurEngine, model_of
from app.bench.report import Report
from app.bench.workload import Generation, Prompts
from engine.config import EngineConfig

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
    def idle_rate(self) -> float:
        return median(self.before)

    @property
    def busy_rate(self) -> float:
        return median(self.during[SETTLED_AFTER // WINDOW :])

    @property
    def after_rate(self) -> float:
        return median(self.after[SETTLED_AFTER // WINDOW :])


def run(options: argparse.Namespace) -> Report:
    from engine.backends.llama_cpp.backend import usable_cores

    model = model_of(options.model)
    threads = options.threads or usable_cores()
    taken = max(1, threads // 2)
    facts = machine(model=model.stem, threads=threads, context=options.context, busy_cores=taken)
    config = EngineConfig(model_path=model, context_tokens=options.context, threads=options.threads)
    trials: list[Trial] = []
    ends = perf_counter() + 60 * options.minutes
    with OurEngine(config) as engine:
        prompts = Prompts(engine.tokenizer)
        engine.generate(prompts.generations(1, options.prompt, options.tokens))
        while len(undisturbed(trials)) < options.pairs and (perf_counter() < ends or not trials):
            trials.append(measure(engine, prompts.prompt(options.prompt), taken))
            last = trials[-1]
            print(
                f"trial {len(trials)}: {last.idle_rate:.0f}, {last.busy_rate:.0f},"
                f" {last.after_rate:.0f} tokens/s; others {last.others_cores:.2f} cores",
                file=sys.stderr,
                flush=True,
            )
    clean = undisturbed(trials) or trials
    windows = table_of_windows(clean)
    notes = [
        f"{len(trials)} trials, {len(trials) - len(undisturbed(trials))} of them disturbed by other"
        f" programs{'' if undisturbed(trials) else ', which are shown for want of better ones'}."
    ]
    return Report(
        "decode --busy",
        facts,
        [*summary(clean), *windows],
        COLUMNS,
        ("measure", "tokens_per_second"),
        notes,
    )


def undisturbed(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.others_cores <= DISTURBED_CORES]


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


def summary(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    shares = {
        "busy": [trial.busy_rate / trial.idle_rate for trial in trials],
        "after": [trial.after_rate / trial.idle_rate for trial in trials],
    }
    speeds = {
        "busy": [trial.busy_rate for trial in trials],
        "after": [trial.after_rate for trial in trials],
    }
    rows: list[dict[str, Any]] = [
        {
            "measure": "idle",
            "tokens_per_second": median(trial.idle_rate for trial in trials),
            "trials": len(trials),
        }
    ]
    for name, bar in BARS.items():
        figure = figure_of(shares[name])
        rows.append(
            {
                "measure": f"{name}, from {SETTLED_AFTER} tokens on",
                "tokens_per_second": median(speeds[name]),
                "ratio": figure.median,
                "low": figure.low,
                "high": figure.high,
                "trials": figure.num,
                "bar": str(bar),
                "passed": bar.is_met(figure),
            }
        )
    return rows


def table_of_windows(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    rows = []
    for phase in ("before", "during", "after"):
        columns = zip(*(getattr(trial, phase) for trial in trials), strict=True)
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
