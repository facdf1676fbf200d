"""What is read and asked in the chat workloads: texts of a size in tokens, the same in every run.

No two texts begin alike, so that only the system prompt of one is held for another.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.bench.workload import SEED
from engine.errors import UsageError
from engine.tokenizer import Tokenizer

SYSTEM = "You are a careful assistant. Answer in one short sentence, from the text you are given."
WORDS_AT_ONCE = 20
QUESTIONS = (
    "What is the text about?",
    "Which place is named first?",
    "Give one number that stands in it.",
    "Who is named in it, and why?",
    "What happens at the end?",
    "Which sentence matters most?",
    "What is said about the weather?",
    "What was bought, and what was sold?",
    "Is anything said twice?",
    "Put it into one sentence.",
)
QUESTION_TOKENS = 48
"""More than any question takes, with what a template puts around it and around its answer."""

PEOPLE = ("a miller", "the ferryman", "two sisters", "an old clerk", "the baker", "a surveyor")
VERBS = ("repaired", "sold", "carried home", "counted", "painted", "forgot", "measured", "bought")
KINDS = ("copper", "narrow", "heavy", "borrowed", "green", "unfinished", "quiet", "winter")
THINGS = ("kettles", "ladders", "maps", "lanterns", "barrels", "clocks", "boats", "shutters")
PLACES = ("Alder Bridge", "the lower mill", "Saint Odo", "the harbour", "Tarn Street", "Esk")
WEATHERS = ("in the rain", "before the frost", "on a windless day", "while it snowed", "at noon")


class Texts:
    """Passages by number: the same number and size give the same text.

    `sources` are texts to take passages from; without them sentences are made up. `run` goes into
    the system prompt, for a server that may remember an earlier run.
    """

    def __init__(self, tokenizer: Tokenizer, sources: Sequence[str] = (), run: str = "") -> None:
        self._tokenizer = tokenizer
        self._sources = [words for words in (source.split() for source in sources) if words]
        self.system = f"{SYSTEM} ({run})" if run else SYSTEM

    def passage(self, number: int, num_tokens: int) -> str:
        """At most so many tokens and hardly fewer; at least its number."""
        parts = [f"#{number}:"]
        left = num_tokens - self._count(parts[0])
        for part in self._words(number) if self._sources else sentences(number):
            left -= self._count(part)
            if left < 0:
                break
            parts.append(part)
        return " ".join(parts)

    def _count(self, part: str) -> int:
        return len(self._tokenizer.encode(f" {part}"))

    def _words(self, number: int) -> Iterator[str]:
        """A source from a place on that differs from round to round, and over again."""
        round_, index = divmod(number, len(self._sources))
        words = self._sources[index]
        first = 997 * round_
        while True:
            yield " ".join(words[(first + step) % len(words)] for step in range(WORDS_AT_ONCE))
            first += WORDS_AT_ONCE


def question(number: int) -> str:
    return QUESTIONS[number % len(QUESTIONS)]


def sentences(number: int) -> Iterator[str]:
    """Without end, from a fixed seed."""
    generator = random.Random(f"{SEED} {number}")
    pick = generator.choice
    while True:
        yield (
            f"In {generator.randrange(1700, 1990)} {pick(PEOPLE)} {pick(VERBS)}"
            f" {generator.randrange(2, 900)} {pick(KINDS)} {pick(THINGS)} near {pick(PLACES)}"
            f" {pick(WEATHERS)}."
        )


def sources_of(folder: str) -> list[str]:
    """The texts of a folder's .txt files by name; none for no folder."""
    if not folder:
        return []
    found = [
        file.read_text(encoding="utf-8", errors="replace")
        for file in sorted(Path(folder).glob("*.txt"))
    ]
    if not any(text.strip() for text in found):
        raise UsageError(f"There is no text in a .txt file of {folder}: name another folder.")
    return found
