"""Our masks beside llama.cpp's own grammar, over the same answer to the same schema.

A mask says of every token of the vocabulary whether it may come next. llama.cpp answers without one
where it can: it draws first, asks whether that one token is allowed, and only if it is not, of all
of them. Its speed is taken in that way, and the time of a mask of all tokens stands beside it.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from app.bench.compare import Pair, figure_of, interleave, show_pair
from app.bench.guided_forms import PERSON
from app.bench.replay import GREEDY, Change, ReplayEngine, Written, same

if TYPE_CHECKING:
    from app.bench.guided import GuidedBench, Subject

MOST_MASKS = 16
"""Places of the answer at which a mask is timed: llama.cpp's takes up to 0.3 s at 262k tokens."""


def rows(
    vocabulary: Any, bench: "GuidedBench", options: argparse.Namespace
) -> list[dict[str, Any]]:
    from engine.backends.llama_cpp.samplers import gbnf_of_schema

    gbnf = gbnf_of_schema(PERSON.grammar.source)
    subject = bench.subject(PERSON, bench.single, in_both(vocabulary, gbnf))
    return [
        mask_times(vocabulary, subject, gbnf, options),
        speeds(vocabulary, subject, gbnf, bench.joint, options),
    ]


def mask_times(
    vocabulary: Any, subject: "Subject", gbnf: str, options: argparse.Namespace
) -> dict[str, Any]:
    """Milliseconds for each mask, at places spread over the answer."""
    step = max(1, len(subject.token_ids) // MOST_MASKS)
    row = np.random.default_rng(0).standard_normal(vocabulary.num_tokens).astype(np.float32)
    pairs, figures = interleave(
        lambda number: our_mask_ms(subject, row, step),
        lambda number: their_mask_ms(vocabulary, subject, gbnf, row, step),
        lambda pair: {"ratio": pair.ours / pair.theirs},
        minutes=options.minutes,
        min_pairs=options.pairs,
        on_pair=show_pair("masks, "),
    )
    return {
        "measure": "mask, ms",
        "form": subject.asked.name,
        "tokens": len(subject.token_ids),
        "ours": figure_of([pair.ours for pair in pairs]).median,
        "theirs": figure_of([pair.theirs for pair in pairs]).median,
        **_interval(figures["ratio"], len(pairs)),
    }


def our_mask_ms(subject: "Subject", row: NDArray[np.float32], step: int) -> float:
    matcher = subject.form.matcher()
    used, num = 0.0, 0
    for place, token_id in enumerate(subject.token_ids):
        if place % step == 0:
            began = time.thread_time()
            matcher.restrict(row)
            used += time.thread_time() - began
            num += 1
        matcher.accept(token_id)
    return used * 1e3 / num


def their_mask_ms(
    vocabulary: Any, subject: "Subject", gbnf: str, row: NDArray[np.float32], step: int
) -> float:
    """That the row is copied into llama.cpp's form is not counted."""
    from engine.backends.llama_cpp.samplers import LlamaCandidates, LlamaSampler

    grammar = LlamaSampler.grammar(vocabulary, gbnf)
    used, num = 0.0, 0
    for place, token_id in enumerate(subject.token_ids):
        if place % step == 0:
            candidates = LlamaCandidates(row)
            began = time.thread_time()
            grammar.run(candidates)
            used += time.thread_time() - began
            num += 1
        grammar.accept(token_id)
    return used * 1e3 / num


def in_both(vocabulary: Any, gbnf: str) -> Change:
    """Leaves possible what llama.cpp's grammar allows, too: it ends the process over a token that
    it did not expect, and where white space may stand it is of another mind."""
    from engine.backends.llama_cpp.samplers import LlamaCandidates, LlamaSampler

    grammar = LlamaSampler.grammar(vocabulary, gbnf)
    num_accepted = 0

    def change(row: NDArray[np.float32], known: Sequence[int]) -> int | None:
        nonlocal num_accepted
        for token_id in known[num_accepted:]:
            grammar.accept(token_id)
        num_accepted = len(known)
        kept, _ = grammar.run(LlamaCandidates(row))
        row[kept["id"]] = kept["logit"]
        return None

    return change


class TheirGrammar:
    """llama.cpp's grammar in the replay of one answer: it does the work, and the answer stays."""

    def __init__(self, vocabulary: Any, gbnf: str, script: Sequence[int]) -> None:
        from engine.backends.llama_cpp.samplers import LlamaSampler

        self._grammar = LlamaSampler.grammar(vocabulary, gbnf)
        self._script = script
        self.num_masks = 0

    def __call__(self, row: NDArray[np.float32], known: Sequence[int]) -> int | None:
        from engine.backends.llama_cpp.samplers import LlamaCandidates

        place = len(known)
        if place >= len(self._script):
            return None
        drawn = int(row.argmax())
        kept, _ = self._grammar.run(LlamaCandidates(row[drawn : drawn + 1], [drawn]))
        if not np.isfinite(kept["logit"][0]):
            self._grammar.run(LlamaCandidates(row))
            self.num_masks += 1
        self._grammar.accept(self._script[place])
        return self._script[place]


def speeds(
    vocabulary: Any,
    subject: "Subject",
    gbnf: str,
    engine: ReplayEngine,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Tokens a second, from the prompt that was read to the last token, ours with forced runs."""
    free = replace(GREEDY, max_tokens=len(subject.token_ids), ignore_eos=True)
    num_masks = 0

    def theirs(number: int) -> Written:
        nonlocal num_masks
        grammar = TheirGrammar(vocabulary, gbnf, subject.token_ids)
        written = same(subject.token_ids, engine.write(subject.prompt, free, change=grammar))
        num_masks = grammar.num_masks
        return written

    pairs, figures = interleave(
        lambda number: engine.again(subject.prompt, subject.token_ids, subject.guidance),
        theirs,
        rates,
        minutes=options.minutes,
        min_pairs=options.pairs,
        on_pair=show_pair("speeds, "),
    )
    return {
        "measure": "tokens/s",
        "form": subject.asked.name,
        "tokens": len(subject.token_ids),
        "ours": figure_of([pair.ours.tokens_per_second for pair in pairs]).median,
        "theirs": figure_of([pair.theirs.tokens_per_second for pair in pairs]).median,
        "their_masks": num_masks,
        **_interval(figures["ratio"], len(pairs)),
    }


def rates(pair: Pair[Written]) -> dict[str, float]:
    return {"ratio": pair.ours.tokens_per_second / pair.theirs.tokens_per_second}


def _interval(figure: Any, num_pairs: int) -> dict[str, Any]:
    return {
        "ratio": figure.median,
        "low": figure.low,
        "high": figure.high,
        "pairs": num_pairs,
    }
