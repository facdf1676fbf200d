"""A document's passages: stretches of about 120 words with their place, by rules alone.

    words of a page   ......h......|.....p....s.....|....   h heading, p paragraph, s sentence ends
    passages          [-----------]
                             [------------------]           overlapping, but never over a heading

A passage ends where its page ends, except that a sentence which goes on overleaf stays whole.
The row of a table is never cut, and nothing is left out.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from app.documents.document import Heading, Page
from app.documents.words import DENSE

BETWEEN_HEADINGS = " \u203a "
"""In the tables a path of headings is one text."""
MOST_WORDS = 120
FEWEST_WORDS = 80
"""From here on the end of a sentence is a good end, and that of a paragraph a better one."""
OVERLAP = 20
LEAST_REST = 30
"""What is left of a page and shorter than this goes with what stands before it."""
SHORT_SECTION = 40
"""A section of fewer words does not stand alone."""
LONGEST_ROW = 400
LONGEST_SENTENCE_OVERLEAF = 60

# Two characters of a script without spaces are about one word.
WORD = re.compile(rf"[{DENSE}]{{1,2}}|[^\s{DENSE}]+")
SENTENCE_END = re.compile(r"[.!?。！？…؟۔।][\"'”’»)\]」』]*$")
# Only a word that ends in one of these is worth that search.
SENTENCE_SIGNS = frozenset(".!?。！？…؟۔।\"'”’»)]」』")
CELLS = " | "


class Break(IntEnum):
    """What lies between two words."""

    NONE = 0
    """They belong to one row of a table."""
    WORD = 1
    SENTENCE = 2
    PARAGRAPH = 3
    """Also what lies between the rows of a table."""
    HEADING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """It goes from `start` in the text of page `page_from` to `end` in that of `page_to`.

    `heading` is what all of it stands under, outermost first.
    """

    page_from: int
    page_to: int
    start: int
    end: int
    heading: tuple[str, ...]


class _Word(NamedTuple):
    """Made for every word of every document, so it is of the kind that is made quickest."""

    start: int
    end: int
    before: Break


def split(pages: Iterable[Page]) -> Iterator[Passage]:
    """Takes the pages one by one, and holds two of them."""
    heading: tuple[str, ...] = ()
    before: Page | None = None
    for page in pages:
        if before is not None:
            yield from _passages(before, heading, page)
            heading = _heading_at(before, len(before.text), heading)
        before = page
    if before is not None:
        yield from _passages(before, heading, None)


def passage_text(passage: Passage, texts: dict[int, str]) -> str:
    """Its words, given the texts of its pages by their numbers."""
    if passage.page_from == passage.page_to:
        return texts[passage.page_from][passage.start : passage.end]
    inner = range(passage.page_from + 1, passage.page_to)
    return "\n".join(
        (
            texts[passage.page_from][passage.start :],
            *(texts[number] for number in inner),
            texts[passage.page_to][: passage.end],
        )
    )


def _passages(page: Page, inherited: tuple[str, ...], following: Page | None) -> Iterator[Passage]:
    words = _words(page)
    first = 0
    while first < len(words):
        last = _end(words, first)
        page_to, end = page.number, words[last - 1].end
        if last == len(words) and following is not None:
            rest = _rest_of_sentence(page.text, following.text)
            if rest is not None:
                page_to, end = following.number, rest
        yield Passage(
            page_from=page.number,
            page_to=page_to,
            start=words[first].start,
            end=end,
            heading=_common_heading(page, words[first].start, words[last - 1].end, inherited),
        )
        first = last if last == len(words) else _next_start(words, first, last)


def _words(page: Page) -> list[_Word]:
    """With what lies before each of them."""
    text = page.text
    headings = sorted(heading.start for heading in page.headings)
    rows = _rows(text)
    row = section = last_end = 0
    last = ""
    words: list[_Word] = []
    for match in WORD.finditer(text):
        start, end = match.span()
        is_heading = False
        while section < len(headings) and headings[section] <= start:
            is_heading, section = True, section + 1
        while row < len(rows) and rows[row][1] <= start:
            row += 1
        in_row = row < len(rows) and rows[row][0] <= start
        gap = text[last_end:start]
        if is_heading or not words:
            before = Break.HEADING
        elif in_row and rows[row][0] < start and "\n" not in gap:
            before = Break.NONE
        elif in_row or gap.count("\n") > 1 or (row and rows[row - 1][1] == last_end):
            before = Break.PARAGRAPH
        elif last[-1] in SENTENCE_SIGNS and SENTENCE_END.search(last):
            before = Break.SENTENCE
        else:
            before = Break.WORD
        words.append(_Word(start, end, before))
        last, last_end = match.group(), end
    return words


def _rows(text: str) -> list[tuple[int, int]]:
    """Where the rows of tables lie; one that is longer than any passage is text like any other."""
    rows = []
    start = 0
    while CELLS in text and start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        if CELLS in line and len(line.split()) <= LONGEST_ROW:
            rows.append((start, start + len(line.rstrip())))
        start = end + 1
    return rows


def _end(words: list[_Word], first: int) -> int:
    """The word before which a passage that begins with `first` ends."""
    for number in range(first + SHORT_SECTION, min(first + MOST_WORDS + 1, len(words))):
        if words[number].before is Break.HEADING:
            return number
    if len(words) - first <= MOST_WORDS + LEAST_REST and not any(
        word.before is Break.HEADING for word in words[first + SHORT_SECTION :]
    ):
        return len(words)
    for wanted in (Break.PARAGRAPH, Break.SENTENCE):
        for number in range(min(first + MOST_WORDS, len(words) - 1), first + FEWEST_WORDS, -1):
            if words[number].before >= wanted:
                return number
    number = first + MOST_WORDS
    while number < len(words) and words[number].before is Break.NONE:
        number += 1
    return min(number, len(words))


def _next_start(words: list[_Word], first: int, last: int) -> int:
    """Where the next passage begins: a little before the end of this one, with a sentence if one
    begins there; never before a heading or within the rows of a table."""
    latest = words[last].before
    start = last
    for number in range(last, max(first, last - OVERLAP - OVERLAP // 2), -1):
        if words[number].before in (Break.HEADING, Break.NONE):
            break
        if words[number].before is Break.PARAGRAPH and latest is Break.NONE:
            break
        if last - number <= OVERLAP:
            start = number
        if words[number].before >= Break.SENTENCE and last - number >= OVERLAP // 2:
            return number
        latest = words[number].before
    return start


def _rest_of_sentence(text: str, following: str) -> int | None:
    """Where in the following page the sentence ends that this one leaves open, if it does."""
    ending = text.rstrip()
    first = WORD.search(following)
    if not ending or first is None or SENTENCE_END.search(ending) or CELLS in ending[-200:]:
        return None
    if not (first.group()[0].islower() or re.match(rf"[{DENSE}]", first.group())):
        return None
    for number, match in enumerate(WORD.finditer(following)):
        if number == LONGEST_SENTENCE_OVERLEAF:
            return None
        if SENTENCE_END.search(match.group()):
            return match.end()
    return None


def _heading_at(page: Page, place: int, inherited: tuple[str, ...]) -> tuple[str, ...]:
    before = [heading for heading in page.headings if heading.start <= place]
    return max(before, key=_start).path if before else inherited


def _common_heading(
    page: Page, start: int, end: int, inherited: tuple[str, ...]
) -> tuple[str, ...]:
    common = _heading_at(page, start, inherited)
    for heading in page.headings:
        if start < heading.start < end:
            while common != heading.path[: len(common)]:
                common = common[:-1]
    return common


def _start(heading: Heading) -> int:
    return heading.start
