"""What picking one token costs: our chain beside llama.cpp's C samplers, on the same logits.

A step is everything from a row of logits to a token id, with the penalties of a growing answer. It
is judged in processor time, since it runs on one thread. llama.cpp's side is its chain alone; that
it copies the row into its own form is not counted.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.bench.compare import MIN_PAIRS, Bar, Pair, figure_of, interleave
from app.bench.machine import Others, machine
from app.bench.options import add_effort
from app.bench.report import Report
from engine.request import Request
from engine.sampling.sampler import Sampler
from engine.sampling_params import SamplingParams
from engine.tokenizer import ControlToken

VOCABULARIES = (49_152, 152_064)
STEPS = 20
PROMPT_TOKENS, ANSWER_TOKENS = 512, 256
NUM_ROWS = 8
COLUMNS = (
    "chain",
    "logits",
    "tokens",
    "ours_ms",
    "low",
    "high",
    "llama_cpp_ms",
    "ratio",
    "pairs",
    "bar",
    "passed",
)


@dataclass(frozen=True, slots=True)
class Chain:
    """The same controls for both sides; `bars` are milliseconds by the size of the vocabulary."""

    name: str
    params: SamplingParams
    theirs: Sequence[Sequence[Any]] | None
    bars: Mapping[int, float] | None = None


OFF = SamplingParams(temperature=0.8, top_k=0, top_p=1.0, min_p=0.0, seed=1)
CHAINS = (
    Chain(
        "penalties, top-k, top-p, min-p, temperature",
        SamplingParams(
            temperature=0.8,
            top_k=40,
            top_p=0.95,
            min_p=0.05,
            repetition_penalty=1.1,
            frequency_penalty=0.1,
            presence_penalty=0.1,
            seed=1,
        ),
        [
            ("penalties", 256, 1.1, 0.1, 0.1),
            ("top_k", 40),
            ("top_p", 0.95, 1),
            ("min_p", 0.05, 1),
            ("temp", 0.8),
            ("dist", 1),
        ],
        {49_152: 0.3, 152_064: 1.0},
    ),
    Chain(
        "top-p without top-k",
        replace(OFF, top_p=0.95),
        [("top_p", 0.95, 1), ("temp", 0.8), ("dist", 1)],
        {49_152: 1.0, 152_064: 3.0},
    ),
    Chain(
        "temperature, then top-p",
        replace(OFF, top_p=0.95, sampler_order=("temperature", "top_p")),
        [("temp", 0.8), ("top_p", 0.95, 1), ("dist", 1)],
    ),
    Chain(
        "min-p alone",
        replace(OFF, min_p=0.05),
        [("min_p", 0.05, 1), ("temp", 0.8), ("dist", 1)],
    ),
    Chain(
        "typical",
        replace(OFF, typical_p=0.9),
        [("typical", 0.9, 1), ("temp", 0.8), ("dist", 1)],
    ),
    Chain(
        "top-n-sigma, XTC",
        replace(OFF, top_n_sigma=1.0, xtc_probability=0.5),
        [("top_n_sigma", 1.0), ("xtc", 0.5, 0.1, 1, 1), ("temp", 0.8), ("dist", 1)],
    ),
    Chain("mirostat 2", replace(OFF, mirostat=2), [("temp", 0.8), ("mirostat_v2", 1, 5.0, 0.1)]),
    Chain("tail-free, top-a, eta", replace(OFF, tfs_z=0.95, top_a=0.1, eta_cutoff=0.001), None),
    Chain(
        "DRY, no-repeat n-gram, top-k",
        replace(OFF, top_k=40, dry_multiplier=0.8, no_repeat_ngram_size=4),
        None,
    ),
    Chain(
        "nothing but the draw",
        OFF,
        [("temp", 0.8), ("dist", 1)],
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=VOCABULARIES, metavar="N", help="of a vocabulary"
    )
    add_effort(parser, pairs=MIN_PAIRS, minutes=0.5, each="row")


def run(options: argparse.Namespace) -> Report:
    rows: list[dict[str, Any]] = []
    with Others() as others:
        for num_tokens in options.tokens:
            for shape, logits in shapes(num_tokens).items():
                rows += [compared(chain, shape, logits, options) for chain in CHAINS]
    facts = machine(numpy=np.__version__, prompt=PROMPT_TOKENS, answer=ANSWER_TOKENS)
    notes = [
        f"Processor time of one step, the median of means over {STEPS}. Others kept"
        f" {others.cores:.2f} cores busy meanwhile."
    ]
    return Report("sampling", facts, rows, COLUMNS, notes=notes)


def shapes(num_tokens: int) -> dict[str, list[NDArray[np.float32]]]:
    """Rows by the shape of their distribution: a few tokens have nearly all of it, or all have
    about the same."""
    generator = np.random.default_rng(0)

    def rows(spread: float, peak: float) -> list[NDArray[np.float32]]:
        found = []
        for _ in range(NUM_ROWS):
            row = spread * generator.standard_normal(num_tokens)
            row[generator.integers(0, num_tokens, 20)] += peak
            found.append(row.astype(np.float32))
        return found

    return {"peaked": rows(2.0, 12.0), "flat": rows(0.1, 0.0)}


def compared(
    chain: Chain, shape: str, logits: list[NDArray[np.float32]], options: argparse.Namespace
) -> dict[str, Any]:
    num_tokens = len(logits[0])
    row: dict[str, Any] = {"chain": chain.name, "logits": shape, "tokens": num_tokens}
    ours = Ours(chain, logits)
    if chain.theirs is None:
        figure = figure_of([ours.step_ms() for _ in range(options.pairs)])
    else:
        theirs = Theirs(chain, logits)
        pairs, figures = interleave(
            lambda number: ours.step_ms(),
            lambda number: theirs.step_ms(),
            figures_of,
            minutes=options.minutes,
            min_pairs=options.pairs,
        )
        figure = figures["ours"]
        row["llama_cpp_ms"] = figure_of([pair.theirs for pair in pairs]).median
        row["ratio"] = figures["ratio"].median
    row |= {
        "ours_ms": figure.median,
        "low": figure.low,
        "high": figure.high,
        "pairs": figure.num,
    }
    if chain.bars is not None and num_tokens in chain.bars:
        bar = Bar(at_most=chain.bars[num_tokens])
        row |= {"bar": str(bar), "passed": bar.is_met(figure)}
    return row


def figures_of(pair: Pair[float]) -> dict[str, float]:
    return {"ratio": pair.ours / pair.theirs, "ours": pair.ours}


class Ours:
    """Our sampler over an answer that grows with every step."""

    def __init__(self, chain: Chain, logits: list[NDArray[np.float32]]) -> None:
        self._logits = logits
        self._sampler = Sampler(Numbers(len(logits[0])))
        prompt, answer = said(len(logits[0]))
        self._request = Request(prompt, chain.params)
        self._request.token_ids.extend(answer)
        # What is made once for a request is no part of a step.
        self._sampler.sample_row(logits[0], self._request)

    def step_ms(self) -> float:
        began = time.thread_time()
        for number in range(STEPS):
            row = self._logits[number % NUM_ROWS]
            token_id = self._sampler.sample_row(row, self._request)
            self._request.token_ids.append(token_id)
        return (time.thread_time() - began) * 1e3 / STEPS


class Theirs:
    """llama.cpp's chain, which is told of every token."""

    def __init__(self, chain: Chain, logits: list[NDArray[np.float32]]) -> None:
        from engine.backends.llama_cpp.samplers import LlamaSampler

        assert chain.theirs is not None
        num_tokens = len(logits[0])
        steps = [
            (name, num_tokens, *arguments) if name == "penalties" else (name, *arguments)
            for name, *arguments in chain.theirs
        ]
        self._logits = logits
        self._sampler = LlamaSampler.chain(*steps)
        for token_id in (token_id for part in said(num_tokens) for token_id in part):
            self._sampler.accept(token_id)

    def step_ms(self) -> float:
        from engine.backends.llama_cpp.samplers import LlamaCandidates

        used = 0.0
        for number in range(STEPS):
            candidates = LlamaCandidates(self._logits[number % NUM_ROWS])
            began = time.thread_time()
            kept, selected = self._sampler.run(candidates)
            self._sampler.accept(int(kept["id"][selected]))
            used += time.thread_time() - began
        return used * 1e3 / STEPS


def said(num_tokens: int) -> tuple[list[int], list[int]]:
    """Prompt and answer so far."""
    generator = np.random.default_rng(1)
    tokens: list[int] = generator.integers(0, num_tokens, PROMPT_TOKENS + ANSWER_TOKENS).tolist()
    return tokens[:PROMPT_TOKENS], tokens[PROMPT_TOKENS:]


class Numbers:
    """A vocabulary of numbers, with one token that ends."""

    num_end_tokens = 1
    bos_id: int | None = None
    control_tokens: Mapping[str, ControlToken] = {}

    def __init__(self, num_tokens: int) -> None:
        self.num_tokens = num_tokens

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def token_bytes(self, token_id: int) -> bytes:
        return f" {token_id}".encode()

    def is_end(self, token_id: int) -> bool:
        return token_id == 0
