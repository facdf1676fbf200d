"""Answers from documents: what is found, what is refused, and whether citations are right.

questions --> search: gold among the first 5, nDCG of 10, refused where there is no answer
          |-> with an embedder also by words alone, by meaning alone, and the difference
          `-> marks: the known answers with wrong marks, and answers of other questions
          `-> a model: its answers, and with the texts swapped under their numbers
"""

import argparse
import asyncio
import math
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.bench.machine import machine
from app.bench.options import add_context, add_model
from app.bench.our_engine import model_of
from app.bench.report import Report
from app.chat.chat_model import ChatModel, load_chat_model
from app.chat.message import Role
from app.chat.quotations import fitted, marks_only
from app.chat.turns import Turn
from app.chat.written import read_whole
from app.documents.answering import Answering, quotations_of
from app.documents.embedding.choice import NAMES, NONE, EmbedderChoice
from app.documents.embedding.embeddings import Embedding
from app.documents.embedding.process import TEXT_S
from app.documents.fusion import Legs
from app.documents.grounds import Grounds
from app.documents.library import Library
from app.documents.quoting import MOST_PASSAGES, quoted
from app.documents.reading import Reader
from app.documents.scans import Scans
from app.eval.asked import Asked, read_asked
from app.eval.paired import difference
from engine.config import EngineConfig
from engine.errors import UsageError
from engine.sampling_params import SamplingParams

COLUMNS = (
    *("subset", "questions", "hit_at_5", "ndcg_at_10", "refused"),
    *("words_hit_at_5", "meaning_hit_at_5", "gain", "gain_low", "gain_high", "ndcg_gain"),
    *("marks", "marks_right", "mark_coverage", "foreign", "foreign_cited"),
    *("answers", "page_accuracy", "coverage", "swapped_accuracy"),
)
GREEDY = SamplingParams(temperature=0.0, max_tokens=64)
NUM_LOOKED = 10
SEED = 7


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_context(parser)
    parser.add_argument("--data", required=True, metavar="DIR", help="questions.jsonl and docs")
    parser.add_argument("--subset", action="append", metavar="NAME", help="only this one; again")
    parser.add_argument(
        "--embedder",
        default=NONE,
        metavar="MODEL",
        help="none (the default), english, multilingual, or a GGUF file: by meaning too",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="N questions of each subset")
    parser.add_argument(
        "--answers", type=int, default=40, metavar="N", help="so many of a model (default 40)"
    )


@dataclass(slots=True)
class Places:
    """Where the gold of each question stood: whether among the first 5, and its gain in nDCG."""

    hits: list[float] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)

    def add(self, golden: Sequence[bool]) -> None:
        self.hits.append(float(any(golden[:5])))
        # One good place is enough, so the first one counts.
        self.gains.append(1 / math.log2(golden.index(True) + 2) if any(golden) else 0.0)

    @property
    def hit_at_5(self) -> float | None:
        return _share(sum(self.hits), len(self.hits))

    @property
    def ndcg_at_10(self) -> float | None:
        return _share(sum(self.gains), len(self.gains))


@dataclass(slots=True)
class Marks:
    """Citations that were shown, of so many answers."""

    num_answers: int = 0
    num_with: int = 0
    num_shown: int = 0
    num_right: int = 0

    def add(self, grounds: Grounds, asked: Asked) -> None:
        shown = [grounds.quotations[number - 1] for number in grounds.cited]
        self.num_answers += 1
        self.num_with += bool(shown)
        self.num_shown += len(shown)
        self.num_right += sum(map(asked.is_answered_in, shown))

    @property
    def accuracy(self) -> float | None:
        return self.num_right / self.num_shown if self.num_shown else None

    @property
    def coverage(self) -> float | None:
        return self.num_with / self.num_answers if self.num_answers else None


@dataclass(slots=True)
class Tally:
    """Of one subset in one language."""

    num_questions: int = 0
    num_refused: int = 0
    places: Places = field(default_factory=Places)
    by_words: Places = field(default_factory=Places)
    by_meaning: Places = field(default_factory=Places)
    known: Marks = field(default_factory=Marks)
    foreign: Marks = field(default_factory=Marks)
    written: Marks = field(default_factory=Marks)
    swapped: Marks = field(default_factory=Marks)

    @property
    def num_answerable(self) -> int:
        return len(self.places.hits)

    def as_row(self, name: str) -> dict[str, Any]:
        gain = difference(self.places.hits, self.by_words.hits) if self.by_words.hits else None
        ndcg = difference(self.places.gains, self.by_words.gains) if self.by_words.hits else None
        return {
            "subset": name,
            "questions": self.num_questions,
            "hit_at_5": self.places.hit_at_5,
            "ndcg_at_10": self.places.ndcg_at_10,
            "words_hit_at_5": self.by_words.hit_at_5,
            "meaning_hit_at_5": self.by_meaning.hit_at_5,
            "gain": None if gain is None else gain.mean,
            "gain_low": None if gain is None else gain.low,
            "gain_high": None if gain is None else gain.high,
            "ndcg_gain": None if ndcg is None else ndcg.mean,
            "ndcg_gain_low": None if ndcg is None else ndcg.low,
            "ndcg_gain_high": None if ndcg is None else ndcg.high,
            "refused": _share(self.num_refused, self.num_questions),
            "marks": self.known.num_answers,
            "marks_right": self.known.accuracy,
            "mark_coverage": self.known.coverage,
            "foreign": self.foreign.num_answers,
            "foreign_cited": self.foreign.coverage,
            "answers": self.written.num_answers,
            "page_accuracy": self.written.accuracy,
            "coverage": self.written.coverage,
            "swapped_accuracy": self.swapped.accuracy,
        }


def run(options: argparse.Namespace) -> Report:
    questions = read_asked(Path(options.data))
    chosen = [each for each in questions if each.subset in (options.subset or [each.subset])]
    random.Random(SEED).shuffle(chosen)
    chosen = first_of_each(chosen, options.limit)
    model = model_of(options.model)
    config = EngineConfig(model_path=model, context_tokens=options.context)
    choice = EmbedderChoice(embedder_named(options.embedder))
    tallies = asyncio.run(_measure(chosen, config, options.answers, choice))
    return Report(
        "docs",
        {**machine(), "model": model.stem, "embedder": Path(choice.model).name},
        [tally.as_row(name) for name, tally in sorted(tallies.items())],
        COLUMNS,
        kind="eval",
        totals=totals_of(tallies),
    )


def totals_of(tallies: dict[str, Tally]) -> dict[str, Any]:
    answerable = {name: each for name, each in tallies.items() if each.num_answerable}
    others = [each for each in tallies.values() if not each.num_answerable]
    num = sum(each.num_answerable for each in answerable.values())
    hits = sum(sum(each.places.hits) for each in answerable.values())
    refused = sum(each.num_refused for each in answerable.values())
    written = [each.written for each in answerable.values()]
    return {
        "hit_at_5": _share(hits, num),
        "ndcg_at_10": _share(sum(sum(each.places.gains) for each in answerable.values()), num),
        "page_accuracy": _share(
            sum(each.num_right for each in written), sum(each.num_shown for each in written)
        ),
        "refused_unanswerable": _share(
            sum(each.num_refused for each in others), sum(each.num_questions for each in others)
        ),
        "false_refusals": _share(refused, num),
        "by_language": {name: each.places.hit_at_5 for name, each in answerable.items()},
    }


async def _measure(
    chosen: Sequence[Asked], config: EngineConfig, num_answers: int, choice: EmbedderChoice
) -> dict[str, Tally]:
    """Raises UsageError for an embedder that cannot be used."""
    tallies: dict[str, Tally] = {}
    with tempfile.TemporaryDirectory(prefix="inglenook-") as folder:
        reader = Reader()
        library = Library(
            Path(folder) / "documents.sqlite3",
            reader,
            scans=Scans(reader),
            embedding=Embedding(Path(folder), lambda: choice, patience_s=TEXT_S),
        )
        await library.prepare()
        for path in sorted({path for each in chosen for path in each.scope.paths}):
            await library.add(Path(path))
        await library.settled()
        has_meaning = await _embed(library, choice)
        answering = Answering(lambda: library)
        rnd = random.Random(SEED)
        to_write: list[tuple[Asked, Grounds]] = []
        for asked in chosen:
            tally = tallies.setdefault(asked.name, Tally())
            grounds = await answering.look(asked.text, asked.scope)
            tally.num_questions += 1
            tally.num_refused += not grounds.is_found
            if not asked.gold:
                continue
            tally.places.add(await _golden(library, asked, Legs.BOTH))
            if has_meaning:
                tally.by_words.add(await _golden(library, asked, Legs.WORDS))
                tally.by_meaning.add(await _golden(library, asked, Legs.MEANING))
            if grounds.is_found and asked.answers:
                await _mark(answering, asked, grounds, rnd.choice(chosen), tally, rnd)
                to_write.append((asked, grounds))
        if num_answers and to_write:
            await _write(to_write[:num_answers], answering, config, tallies)
        await library.close()
    return tallies


async def _golden(library: Library, asked: Asked, legs: Legs) -> list[bool]:
    """Of each place that is found, whether the answer stands there."""
    looked = await library.look_for(asked.text, asked.scope, NUM_LOOKED, legs)
    return [asked.is_answered_in(each) for each in quotations_of(looked)]


async def _embed(library: Library, choice: EmbedderChoice) -> bool:
    """Give every passage its vector. False: none was asked for. Raises UsageError."""
    if choice.model == NONE:
        return False
    library.embeddings.background.wake()
    await library.embeddings.background.settled()
    problem = (await library.embeddings.status()).problem
    if problem:
        raise UsageError(problem)
    return True


async def _mark(
    answering: Answering,
    asked: Asked,
    grounds: Grounds,
    other: Asked,
    tally: Tally,
    rnd: random.Random,
) -> None:
    """What becomes of the known answer with a wrong mark, and of another question's answer."""
    quotations = grounds.quotations[:MOST_PASSAGES]
    grounds = replace(grounds, quotations=quotations)
    golden = [number for number, each in enumerate(quotations, 1) if asked.is_answered_in(each)]
    if not golden:
        return
    wrong = rnd.choice([n for n in range(1, len(quotations) + 2) if n not in golden])
    checked = await answering.check(f"{asked.answers[0]} [{wrong}]", grounds)
    tally.known.add(checked, asked)
    answer = other.answers[0] if other.answers else ""
    if answer and not any(answer in each.text for each in quotations):
        checked = await answering.check(f"{answer} [{golden[0]}]", grounds)
        tally.foreign.add(checked, asked)


async def _write(
    to_write: Iterable[tuple[Asked, Grounds]],
    answering: Answering,
    config: EngineConfig,
    tallies: dict[str, Tally],
) -> None:
    model = await asyncio.to_thread(load_chat_model, config)
    try:
        for asked, grounds in to_write:
            given = await fitted(answering, grounds, model, GREEDY.max_tokens)
            content = await _answer(model, asked.text, given)
            tally = tallies[asked.name]
            tally.written.add(await answering.check(content, given), asked)
            if len(given.quotations) > 1:
                swapped = await answering.check(content, _swapped(given))
                # The places stay with their numbers.
                back = replace(swapped, quotations=given.quotations)
                tally.swapped.add(back, asked)
    finally:
        model.close()


async def _answer(model: ChatModel, question: str, grounds: Grounds) -> str:
    turn = Turn(Role.USER, question, lead=quoted(grounds.quotations, grounds.fence))
    prompt = await model.prompt([turn], "", 0.0)
    guidance = await marks_only(model, len(grounds.quotations))
    with model.loaded.engine.submit(prompt, GREEDY, guidance=guidance) as stream:
        return (await read_whole(stream, model.splitter())).content


def _swapped(grounds: Grounds) -> Grounds:
    """Each text under the next number."""
    texts = [each.text for each in grounds.quotations]
    moved = zip(grounds.quotations, [*texts[1:], texts[0]], strict=True)
    return replace(
        grounds,
        quotations=tuple(replace(each, text=text, heading=(), title="") for each, text in moved),
    )


def embedder_named(given: str) -> str:
    return given if given in NAMES else str(Path(given).expanduser().absolute())


def first_of_each(questions: Sequence[Asked], limit: int | None) -> list[Asked]:
    """At most so many of each subset and language."""
    seen: Counter[str] = Counter()
    chosen = []
    for each in questions:
        seen[each.name] += 1
        if limit is None or seen[each.name] <= limit:
            chosen.append(each)
    return chosen


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
