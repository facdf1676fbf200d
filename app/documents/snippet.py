"""A line that shows why a passage was found, with the words of the question marked."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.documents.text_index import Weighed
from app.documents.words import DENSE, Script, fold, runs, tokens

LENGTH = 280
NUM_BEFORE = 60
SHARE_OF_INFLECTED = 0.5
"""A word with so many of a question word's pieces is another form of it."""

# What a reader takes for a word, marks and all.
WORD = re.compile(
    rf"([{DENSE}]+)|[^\s{DENSE}.,;:!?()\[\]{{}}<>\"“”„«»‘|/…。，、；：！？（）「」\u2010-\u2015-]+"
)


@dataclass(frozen=True, slots=True)
class Snippet:
    """Plain text on one line, with an ellipsis where the passage goes on. `marks` are the places
    of the question's words in it, each from its start to its end."""

    text: str
    marks: tuple[tuple[int, int], ...]


def make_snippet(
    text: str, weighed: Sequence[Weighed], stems_of: Callable[[Iterable[str]], Mapping[str, str]]
) -> Snippet:
    marks = marked(text, weighed, stems_of)
    start = _best_start(marks)
    first = max(0, start - NUM_BEFORE)
    if first:
        # Not in the middle of a word.
        space = text.find(" ", first, start)
        first = first if space < 0 else space + 1
    last = min(len(text), first + LENGTH)
    if last < len(text):
        space = text.rfind(" ", max(first, last - 30), last)
        last = last if space < 0 else space
    before = "…" if first else ""
    line, places = before, []
    at = first
    for mark in marks:
        if mark.start < first or mark.end > last:
            continue
        line += _one_line(text[at : mark.start])
        begin = len(line)
        line += _one_line(text[mark.start : mark.end])
        places.append((begin, len(line)))
        at = mark.end
    line += _one_line(text[at:last]) + ("…" if last < len(text) else "")
    return Snippet(line, tuple(places))


@dataclass(frozen=True, slots=True)
class Mark:
    """A word of the question in a text: which of them, and how much it tells."""

    start: int
    end: int
    number: int
    weight: float


def marked(
    text: str, weighed: Sequence[Weighed], stems_of: Callable[[Iterable[str]], Mapping[str, str]]
) -> list[Mark]:
    """In their order; none lies over another."""
    words = list(WORD.finditer(text))
    pieces = [() if match.group(1) else tuple(tokens(fold(match.group()))) for match in words]
    stems = stems_of(token for each in pieces for token in each)
    marks: list[Mark] = []
    for match, parts in zip(words, pieces, strict=True):
        if match.group(1):
            marks += _marks_in_run(match.group(), match.start(), weighed)
            continue
        here = frozenset(stems[part] for part in parts)
        for number, each in enumerate(weighed):
            if _is_form_of(here, each):
                marks.append(Mark(match.start(), match.end(), number, each.weight))
                break
    return marks


def _is_form_of(stems: frozenset[str], word: Weighed) -> bool:
    if not stems:
        return False
    if word.term.script.is_in_threes:
        shared = sum(stem in stems for stem in word.weights)
        return shared >= SHARE_OF_INFLECTED * max(len(word.weights), len(stems))
    if word.term.script is Script.DENSE:
        return False
    if not stems.isdisjoint(word.weights):
        return True
    return bool(word.beginning) and any(stem.startswith(word.beginning) for stem in stems)


def _marks_in_run(run: str, start: int, weighed: Sequence[Weighed]) -> list[Mark]:
    """In a script without spaces: the pairs of the question, those that touch as one mark."""
    folded = fold(run)
    if len(folded) != len(run):
        return []
    marks: list[Mark] = []
    for place, pair in enumerate(runs(folded, 2)):
        for number, each in enumerate(weighed):
            if each.term.script is not Script.DENSE or pair not in each.weights:
                continue
            begin, end = start + place, start + place + len(pair)
            if marks and marks[-1].end >= begin:
                marks[-1] = Mark(marks[-1].start, end, marks[-1].number, marks[-1].weight)
            else:
                marks.append(Mark(begin, end, number, each.weights[pair]))
            break
    return marks


def _best_start(marks: Sequence[Mark]) -> int:
    """Where the stretch begins that holds most of the question."""
    best, start = 0.0, 0
    for number, first in enumerate(marks):
        seen: dict[int, float] = {}
        for mark in marks[number:]:
            if mark.end - first.start > LENGTH - NUM_BEFORE:
                break
            seen[mark.number] = mark.weight
        if sum(seen.values()) > best:
            best, start = sum(seen.values()), first.start
    return start


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)
