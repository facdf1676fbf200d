"""What answering in a form costs, and what reading its forced tokens together brings.

    free, guided     the same ids with and without a form: what the form costs each token
    forced runs      with and without joint reading, beside what this machine's steps promise
    masks            ours and llama.cpp's own grammar over the same answer

Judged in processor time on one thread, since others use the machine, too; `replay.py` says how both
sides come to write the same.
"""

import argparse
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from app.bench import guided_masks
from app.bench.compare import MIN_PAIRS, Bar, Figure, Pair, interleave, show_pair
from app.bench.guided_forms import AGAINST_FREE, WITH_FORCED, Asked
from app.bench.machine import Others, machine
from app.bench.options import add_effort, add_model
from app.bench.our_engine import model_of
from app.bench.replay import GREEDY, MOST_TOKENS, Change, Prompts, ReplayEngine, Written
from app.bench.report import Report
from engine.config import EngineConfig
from engine.errors import EngineError
from engine.guided.answer import Guidance
from engine.guided.compiler import CompiledGrammar, compile_grammar
from engine.guided.vocabulary import GuidedVocabulary
from engine.sampling.draft_gate import StepCosts

COLUMNS = (
    *("measure", "form", "tokens", "forced_share", "ours", "theirs", "ratio", "low", "high"),
    *("predicted", "pairs", "bar", "passed"),
)
COST_BAR = Bar(at_most=1.05)
# No slower, up to what can be told apart here.
NEVER_SLOWER = Bar(at_most=1.01)
GAIN_BAR = Bar(at_least=0.9)
# Below this share of forced tokens no gain could be told from chance; and an answer of
# fewer steps is mostly what is done once for each.
MIN_SHARE = 0.1
MIN_STEPS = 8
CONTEXT_TOKENS = 2048
NUM_STEPS = 3
PARTS = ("free", "forced", "masks")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts of it")
    parser.add_argument("--forms", type=int, default=9, metavar="N", help="at most, of each part")
    # Threads that wait for one another are busy all the while, and hide a cost of some percent.
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    add_effort(parser, pairs=MIN_PAIRS, minutes=3.0, each="row")


def run(options: argparse.Namespace) -> Report:
    from engine.backends.llama_cpp.backend import LlamaBackend

    model = model_of(options.model)
    config = EngineConfig(
        model_path=model,
        context_tokens=CONTEXT_TOKENS,
        threads=options.threads,
        max_sequences=4,
        max_running=1,
        speculate=False,
    )
    rows: list[dict[str, Any]] = []
    with closing(LlamaBackend(config)) as backend, Others() as others:
        bench = GuidedBench(backend, config, options)
        if "free" in options.only:
            rows += [bench.cost(asked) for asked in AGAINST_FREE[: options.forms]]
        if "forced" in options.only:
            for asked in WITH_FORCED[: options.forms]:
                rows += bench.gain(asked)
        if "masks" in options.only:
            rows += guided_masks.rows(backend.tokenizer, bench, options)
    facts = machine(model=model.stem, threads=options.threads, context=CONTEXT_TOKENS)
    facts["vocabulary"] = bench.vocabulary.num_tokens
    notes = [
        "Processor time for each token in ms unless said otherwise; the ratio is ours to theirs, of"
        " a gain what was had to what was predicted. An answer of fewer than"
        f" {MIN_STEPS} steps is mostly what is done once for each, so its gain is not judged.",
        f"Others kept {others.cores:.2f} cores busy meanwhile.",
    ]
    return Report("guided", facts, rows, COLUMNS, notes=notes)


@dataclass(frozen=True, slots=True)
class Subject:
    """An answer in a form, as the model wrote it."""

    asked: Asked
    form: CompiledGrammar
    guidance: Guidance
    prompt: Sequence[int]
    token_ids: Sequence[int]


class GuidedBench:
    """Two engines over one backend: one reads forced tokens together, the other one by one."""

    def __init__(self, backend: Any, config: EngineConfig, options: argparse.Namespace) -> None:
        self.joint = ReplayEngine(backend, config)
        self.single = ReplayEngine(backend, replace(config, read_forced=False))
        self.vocabulary = GuidedVocabulary(backend.tokenizer)
        self._prompts = Prompts(backend)
        self._options = options

    def subject(self, asked: Asked, engine: ReplayEngine, change: Change | None = None) -> Subject:
        """Let the model answer. Raises EngineError when the answer does not come to its end."""
        form = compile_grammar(asked.grammar, self.vocabulary)
        guidance = Guidance(form, self._prompts.opened_tag)
        prompt = self._prompts.ask(asked.question)
        params = replace(GREEDY, max_tokens=MOST_TOKENS)
        written = engine.write(prompt, params, guidance, change)
        if written.timings.finish != "form":
            raise EngineError(
                f"The answer to {asked.question!r} did not come to the end of its form: choose"
                " another model for this benchmark."
            )
        if form.matcher().num_valid(written.token_ids) < len(written.token_ids):
            raise EngineError(
                "This model thinks before it answers, which has no form: choose another model for"
                " this benchmark."
            )
        return Subject(asked, form, guidance, prompt, written.token_ids)

    def cost(self, asked: Asked) -> dict[str, Any]:
        """In a form, every token sampled, against the same ids without one."""
        subject = self.subject(asked, self.single)
        pairs, figures = interleave(
            lambda number: self.single.again(subject.prompt, subject.token_ids, subject.guidance),
            lambda number: self.single.again(subject.prompt, subject.token_ids),
            ratio,
            minutes=self._options.minutes,
            min_pairs=self._options.pairs,
            on_pair=show_pair(f"{asked.name}, "),
        )
        return row("guided to free", subject, pairs, figures["processor"], COST_BAR)

    def gain(self, asked: Asked) -> list[dict[str, Any]]:
        """Forced tokens read together against one by one, in the same form."""
        subject = self.subject(asked, self.joint)
        sizes = step_sizes(subject)
        # One token is sampled in each step.
        share = 1 - len(sizes) / len(subject.token_ids)
        predicted: list[float] = []

        def ratios(pair: Pair[Written]) -> dict[str, float]:
            predicted.append(predicted_gain(self._costs(sizes), sizes, len(subject.token_ids)))
            found = ratio(pair)
            return found | {"of_predicted": 1 / found["processor"] / predicted[-1]}

        pairs, figures = interleave(
            lambda number: self.joint.again(subject.prompt, subject.token_ids, subject.guidance),
            lambda number: self.single.again(subject.prompt, subject.token_ids, subject.guidance),
            ratios,
            minutes=self._options.minutes,
            min_pairs=self._options.pairs,
            on_pair=show_pair(f"{asked.name}, "),
        )
        more = {"forced_share": share, "steps": len(sizes), "largest_step": max(sizes)}
        whole = row("forced together", subject, pairs, figures["processor"], NEVER_SLOWER) | more
        if share < MIN_SHARE:
            return [whole]
        gain = figures["of_predicted"]
        judged = {
            "measure": "gain to predicted",
            "form": asked.name,
            "tokens": len(subject.token_ids),
            **more,
            "ours": 1 / figures["processor"].median,
            "predicted": median(predicted),
            **judgement(gain, GAIN_BAR if len(sizes) >= MIN_STEPS else None, len(pairs)),
        }
        return [whole, judged]

    def _costs(self, sizes: Sequence[int]) -> StepCosts:
        costs = StepCosts()
        for size in sorted({1, *sizes}):
            costs.learn(size, 0, self.joint.step_processor_s(size, NUM_STEPS))
        return costs


def step_sizes(subject: Subject) -> list[int]:
    """Tokens of each step when all that the form forces is read with what was sampled before.

    Found by following the form, not by looking at what the engine did.
    """
    matcher = subject.form.matcher()
    sizes: list[int] = []
    place, pending = 0, 1
    while True:
        while not matcher.is_accepting and (forced := matcher.forced()):
            for token_id in forced:
                matcher.accept(token_id)
            place += len(forced)
            pending += len(forced)
        if place == len(subject.token_ids):
            # The answer is complete, and nobody asks what would follow it.
            return sizes
        sizes.append(pending)
        matcher.accept(subject.token_ids[place])
        place += 1
        pending = 1
        if place == len(subject.token_ids):
            return sizes


def predicted_gain(costs: StepCosts, sizes: Sequence[int], num_tokens: int) -> float:
    """Of steps of these sizes, to one for each token."""
    return num_tokens * costs.seconds(1, 0) / sum(costs.seconds(size, 0) for size in sizes)


def ratio(pair: Pair[Written]) -> dict[str, float]:
    return {"processor": pair.ours.processor_s / pair.theirs.processor_s}


def row(
    measure: str, subject: Subject, pairs: Sequence[Pair[Written]], figure: Figure, bar: Bar
) -> dict[str, Any]:
    num_tokens = len(subject.token_ids)
    return {
        "measure": measure,
        "form": subject.asked.name,
        "tokens": num_tokens,
        "ours": median(pair.ours.processor_s for pair in pairs) * 1e3 / num_tokens,
        "theirs": median(pair.theirs.processor_s for pair in pairs) * 1e3 / num_tokens,
        "wall_ratio": median(pair.ours.wall_s / pair.theirs.wall_s for pair in pairs),
        **judgement(figure, bar, len(pairs)),
    }


def judgement(figure: Figure, bar: Bar | None, num_pairs: int) -> dict[str, Any]:
    found = {
        "ratio": figure.median,
        "low": figure.low,
        "high": figure.high,
        "pairs": num_pairs,
    }
    return found if bar is None else found | {"bar": str(bar), "passed": bar.is_met(figure)}
