"""Where the sentences of an answer lie, in any script, with the marks that follow them.

It is long. [1] It rises in the Alps [2].
^-------------^ ^-----------------------^
"""

import re
from collections.abc import Iterator

from app.documents.citation import Span

_ENDS = r"[.!?…]+[\"'”’»)\]]*(?=\s|\[\d|\Z)|[。！？؟۔।॥]+[\"'”’»」』）]*"
LINES = re.compile(rf"{_ENDS}|\n+")
PARAGRAPHS = re.compile(rf"{_ENDS}|\n(?:\s*\n)+")
MARKS_AFTER = re.compile(r"(?:[ \t]*\[\d{1,4}\])+")
INITIAL = re.compile(r"(?:\A|[^\w])\w\Z")
ORDINAL = re.compile(r"(?:\A|[^\w.,])\d{1,2}\Z")
LISTED = re.compile(r"\s*\d{1,3}\Z")
"""Of what a sentence begins with. More digits are rather a year."""
ABBREVIATED = re.compile(
    r"(?:\A|[^\w])(?:dr|mr|mrs|ms|prof|st|no|nr|vs|etc|ca|approx|bzw|evtl|ggf|str|jr|sr|fig|vol|al"
    r"|art|abs|sra?|av|inc|ltd|co|т|г|гг|см|др)\Z",
    re.IGNORECASE,
)


def sentences(text: str, *, is_wrapped: bool = False) -> Iterator[Span]:
    """In their order, without white space at their edges. What lies between is white space.

    `is_wrapped`: the end of a line ends nothing, as in a page that was printed.
    """
    start = 0
    for end in (PARAGRAPHS if is_wrapped else LINES).finditer(text):
        if end.start() < start or _goes_on(text, start, end):
            continue
        stop = end.end()
        marks = MARKS_AFTER.match(text, stop)
        if marks is not None and "\n" not in end.group():
            stop = marks.end()
        yield from _trimmed(text, start, stop)
        start = stop
    yield from _trimmed(text, start, len(text))


def _goes_on(text: str, start: int, end: re.Match[str]) -> bool:
    """A full stop that ends no sentence: after an initial, a number, or what is cut short; and the
    end of a line after which a sentence goes on."""
    following = text[end.end() : end.end() + 20].lstrip()[:1]
    if end.group() == "\n":
        return following.islower()
    if end.group() != ".":
        return False
    before = text[start : end.start()]
    if following.islower() or ABBREVIATED.search(before) or INITIAL.search(before):
        return bool(following)
    if LISTED.match(before):
        return bool(following)
    return bool(ORDINAL.search(before)) and following.isalnum()


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    inner = text[start:end]
    core = inner.strip()
    if core:
        begin = start + inner.index(core)
        yield Span(begin, begin + len(core))
