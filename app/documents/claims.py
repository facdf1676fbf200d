"""What an answer claims: its sentences, cut behind the marks that name passages.

The Inn is 518 kilometres long [1], and the Rhine 1,233 [2][3]. It is blue.
^--------------------------------^^---------------------------^ ^---------^

Code is left alone: `a[1]` has no mark in it, and what stands between fences claims nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.documents.citation import Span
from app.documents.sentences import sentences

MARK = re.compile(r"\[(\d{1,4})\]")
WORD = re.compile(r"\w+")
BETWEEN_MARKS = " ,;，、"
_CODE = re.compile(
    r"^(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*(?P<fence>`{3,}|~{3,})[^\n`]*(?:\n|\Z)"
    r"(?s:.*?)(?:^[ \t>]*(?P=fence)[`~]*[ \t\r]*$|\Z)"
    r"|(?<![`\\])(?P<ticks>`+)(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE,
)
_LIKE_PROSE = re.compile(r"\[|[.!?…](?!\w)|[。！？؟۔।॥]")
"""What would begin a mark or end a sentence."""
_ASKS = re.compile(r"[?？؟][!?！？]*[*_)）\s]*\Z")
"""No closing quotation mark: what names a question of somebody else says something."""
FEWEST_WORDS, FEWEST_CHARACTERS = 4, 16
"""Of what stands before a mark; less is no claim, and goes with what follows."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What stands before a group of marks, or all of a sentence that has none. `is_question`: it
    is of a sentence that asks, and so claims nothing."""

    span: Span
    text: str
    marks: tuple[re.Match[str], ...]
    is_question: bool = False


def claims(content: str) -> Iterator[Claim]:
    """Of an answer, in the order of its text."""
    prose = _CODE.sub(_without_form, content)
    for sentence in sentences(prose):
        yield from _in_sentence(content, prose, sentence)


def _without_form(code: re.Match[str]) -> str:
    """As long as the code, and without what has a meaning in prose."""
    return "\n" * len(code[0]) if code["fence"] else _LIKE_PROSE.sub(",", code[0])


def _in_sentence(content: str, prose: str, sentence: Span) -> Iterator[Claim]:
    """Cut behind each group of marks; what is left over goes with the last of them."""
    groups: list[list[re.Match[str]]] = []
    start = sentence.start
    asks = _ASKS.search(MARK.sub("", prose[sentence.start : sentence.end])) is not None
    for mark in MARK.finditer(prose, sentence.start, sentence.end):
        before = prose[groups[-1][-1].end() : mark.start()] if groups else ""
        if groups and (
            not before.strip(BETWEEN_MARKS) or _says_little(prose[start : mark.start()])
        ):
            groups[-1].append(mark)
        else:
            start = groups[-1][-1].end() if groups else start
            groups.append([mark])
    if not groups:
        yield Claim(sentence, content[sentence.start : sentence.end], (), asks)
        return
    start = sentence.start
    for number, group in enumerate(groups, start=1):
        end = sentence.end if number == len(groups) else group[-1].end()
        yield Claim(Span(start, end), _text(content, start, end, group), tuple(group), asks)
        start = end


def _text(content: str, start: int, end: int, marks: Sequence[re.Match[str]]) -> str:
    """A space stands for each mark."""
    pieces: list[str] = []
    for mark in marks:
        pieces += content[start : mark.start()], " "
        start = mark.end()
    return "".join([*pieces, content[start:end]])


def _says_little(text: str) -> bool:
    """Such as "According to"."""
    words = WORD.findall(MARK.sub(" ", text))
    return len(words) < FEWEST_WORDS and sum(map(len, words)) < FEWEST_CHARACTERS
