"""What guessing brings where much is said again, and what it costs where nothing is.

Both sides write the same answer, the model's own greedy one without guesses (`replay.py`), so what
is compared is time alone. Whether guesses change what is said is looked at apart: written once more
and freely with guesses, the answer may differ only where the two best tokens are a near-tie, since
steps of another shape round otherwise.
"""

import argparse
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.bench.compare import MIN_PAIRS, Bar, Pair, figure_of, interleave, show_pair
from app.bench.machine import Others, machine
from app.bench.options import add_effort, add_model
from app.bench.our_engine import model_of
from app.bench.replay import GREEDY, Prompts, ReplayEngine, Written
from app.bench.report import Report
from app.bench.speculate_work import WORKS, Work
from engine.config import EngineConfig
from engine.cores import usable_cores
from engine.loading import open_backends

COLUMNS = (
    *("work", "tokens", "drafted", "accepted", "guessing", "plain", "ratio", "low", "high"),
    *("processor", "pairs", "bar", "passed", "same_text"),
)
# Processor time for each token, with guesses to without: where much is said again, and where not.
GAIN_BAR = Bar(at_most=0.95)
COST_BAR = Bar(at_most=1.03)
# Logits closer than this may change places with the shape of a step.
NEAR_TIE = 0.5
CONTEXT_TOKENS = 2048


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--draft-model", default="", metavar="M", help="guesses with this one, too")
    parser.add_argument("--tokens", type=int, default=160, metavar="N", help="of an answer")
    parser.add_argument("--works", type=int, default=len(WORKS), metavar="N", help="the first N")
    parser.add_argument("--threads", type=int, metavar="N", help="fixed (default: every core)")
    add_effort(parser, pairs=MIN_PAIRS, minutes=4.0, each="row")


def run(options: argparse.Namespace) -> Report:
    model = model_of(options.model)
    threads = options.threads or usable_cores()
    facts = machine(model=model.stem, threads=threads, context=CONTEXT_TOKENS)
    config = EngineConfig(
        model_path=model,
        context_tokens=CONTEXT_TOKENS,
        threads=threads,
        max_sequences=4,
        max_running=1,
    )
    if options.draft_model:
        config = replace(config, draft_model_path=model_of(options.draft_model))
        facts["draft_model"] = config.draft_model_path.stem if config.draft_model_path else ""
    with ExitStack() as open_things:
        backend, draft_model = open_backends(config)
        open_things.enter_context(closing(backend))
        if draft_model is not None:
            open_things.enter_context(closing(draft_model))
        others = open_things.enter_context(Others())
        guessing = ReplayEngine(backend, config, draft_model)
        plain = ReplayEngine(backend, replace(config, speculate=False, draft_model_path=None))
        prompts = Prompts(backend)
        works = sorted(WORKS[: options.works], key=lambda work: not work.is_copying)
        rows = [compared(work, prompts, guessing, plain, options) for work in works]
    notes = [
        "Tokens a second of both sides and their ratio; `processor` is the ratio of processor time"
        " for each token, which is judged.",
        f"Others kept {others.cores:.2f} cores busy meanwhile.",
    ]
    return Report("speculate", facts, rows, COLUMNS, notes=notes)


def compared(
    work: Work,
    prompts: Prompts,
    guessing: ReplayEngine,
    plain: ReplayEngine,
    options: argparse.Namespace,
) -> dict[str, Any]:
    prompt = prompts.ask(work.question)
    params = replace(GREEDY, max_tokens=options.tokens)
    margins = Margins()
    script = plain.write(prompt, params, change=margins).token_ids
    freely = guessing.write(prompt, params).token_ids
    # The first runs have shown what steps cost and how often guesses come true.
    guessing.again(prompt, script)
    pairs, figures = interleave(
        lambda number: guessing.again(prompt, script),
        lambda number: plain.again(prompt, script),
        ratios,
        minutes=options.minutes,
        min_pairs=options.pairs,
        on_pair=show_pair(f"{work.name}, "),
    )
    bar = GAIN_BAR if work.is_copying else COST_BAR
    drafted = median(pair.ours.timings.drafted_tokens for pair in pairs)
    accepted = median(pair.ours.timings.accepted_tokens for pair in pairs)
    return {
        "work": work.name,
        "is_copying": work.is_copying,
        "tokens": len(script),
        "drafted": drafted / len(script),
        "accepted": accepted / drafted if drafted else 0.0,
        "guessing": figure_of([pair.ours.tokens_per_second for pair in pairs]).median,
        "plain": figure_of([pair.theirs.tokens_per_second for pair in pairs]).median,
        "ratio": figures["speed"].median,
        "low": figures["speed"].low,
        "high": figures["speed"].high,
        "processor": figures["processor"].median,
        "processor_interval": [figures["processor"].low, figures["processor"].high],
        "pairs": len(pairs),
        "bar": str(bar),
        "passed": bar.is_met(figures["processor"]),
        "same_text": margins.is_same(script, freely),
    }


def ratios(pair: Pair[Written]) -> dict[str, float]:
    return {
        "speed": pair.ours.tokens_per_second / pair.theirs.tokens_per_second,
        "processor": pair.ours.processor_s / pair.theirs.processor_s,
    }


class Margins:
    """How far apart the two best logits were at each place of an answer; changes nothing."""

    def __init__(self) -> None:
        self._margins: list[float] = []

    def __call__(self, row: NDArray[np.float32], known: Sequence[int]) -> int | None:
        second, best = np.partition(row, -2)[-2:]
        self._margins.append(float(best - second))
        return None

    def is_same(self, one: Sequence[int], other: Sequence[int]) -> bool:
        """Equal up to the first near-tie at which they part."""
        for place, (left, right) in enumerate(zip(one, other, strict=False)):
            if left != right:
                return self._margins[place] < NEAR_TIE
        shorter = min(len(one), len(other))
        return len(one) == len(other) or self._margins[shorter] < NEAR_TIE
