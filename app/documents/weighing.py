"""What an answer claims and what passages say, to be compared: words weighed, numbers read."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from app.documents.exact import Exact, Readings, numbers_in
from app.documents.quotation import Quotation
from app.documents.sentences import sentences
from app.documents.stop_words import STOP_WORDS
from app.documents.text_index import Weighed
from app.documents.words import Script

SHORT = 3
"""A claim of fewer words is an answer only together with its question."""
ROW = re.compile(r"^(.* \| .*)$", re.MULTILINE)
WeighWords = Callable[[str], Sequence[Weighed]]
StemsOf = Callable[[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """A claim with its words weighed."""

    weighed: Sequence[Weighed]
    exact: Exact
    is_yes_or_no: bool
    is_denial: bool
    """It may say that something is not in the passages: no mark is added, and none is missed."""
    is_echo: bool
    """It is a number of the question, with nothing but words of the question."""
    own: Sequence[Weighed]
    """Those of its words that do not stand in the question."""

    @property
    def says_something(self) -> bool:
        return bool(self.weighed or self.exact.numbers) and not self.is_echo

    @property
    def is_short(self) -> bool:
        """Runs of a script without spaces are long words."""
        num = sum(
            len(each.term.word) / 2 if each.term.script is Script.DENSE else 1
            for each in self.weighed
        )
        return num < SHORT


@dataclass(frozen=True, slots=True)
class ReadNumber:
    """A number of a passage, and what stands in its sentence."""

    readings: Readings
    stems: frozenset[str]
    is_in_row: bool
    """Of a table: several numbers without a word."""


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """`question_share` is how much of the question stands in it."""

    text: str
    stems: frozenset[str]
    question_share: float
    numbers: Callable[[], tuple[ReadNumber, ...]]
    """Read when they are first asked for: that takes several times as long as all else."""


def read_passage(quotation: Quotation, asked: Sequence[Weighed], stems_of: StemsOf) -> ReadPassage:
    """`asked` are the words of the question."""
    above = "\n".join((quotation.name, quotation.title, *quotation.heading))
    stems = stems_of(f"{above}\n{quotation.text}")

    @cache
    def numbers() -> tuple[ReadNumber, ...]:
        read = [ReadNumber(each, stems, is_in_row=False) for each in numbers_in(above)]
        for part in _parts(quotation.text):
            if found := numbers_in(part):
                there = stems_of(part)
                has_words = any(not each.isdigit() for each in there)
                is_row = len(found) > 1 and not has_words
                read += [ReadNumber(each, there, is_row) for each in found]
        return tuple(read)

    return ReadPassage(quotation.text, stems, share(asked, stems), numbers)


def _parts(text: str) -> Iterator[str]:
    """Its sentences, and each row of a table, which says nothing of the next one."""
    for span in sentences(text, is_wrapped=True):
        yield from filter(str.strip, ROW.split(text[span.start : span.end]))


def telling(weighed: Sequence[Weighed]) -> list[Weighed]:
    """A number is looked for as a number, and words that every text has tell nothing."""
    return [
        each
        for each in weighed
        if not each.term.word.isdigit() and each.term.word not in STOP_WORDS
    ]


def share(weighed: Sequence[Weighed], stems: frozenset[str]) -> float:
    """How much of the weight of these words is there; all, where there is no word."""
    total = sum(each.weight for each in weighed)
    return sum(each.found_in(stems) for each in weighed) / total if total else 1.0
