"""What an answer claims: its sentences, cut behind the marks that name passages.

The Inn is 518 kilometres long [1], and the Rhine 1,233 [2][3]. It is blue.
^--------------------------------^^---------------------------^ ^---------^
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.documents.citation import Span
from app.documents.sentences import sentences

MARK = re.compile(r"\[(\d{1,4})\]")
WORD = re.compile(r"\w+")
BETWEEN_MARKS = " ,;，、"
FEWEST_WORDS, FEWEST_CHARACTERS = 4, 16
"""Of what stands before a mark; less is no claim, and goes with what follows."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What stands before a group of marks, or all of a sentence that has none."""

    span: Span
    text: str
    marks: tuple[re.Match[str], ...]


def claims(content: str) -> Iterator[Claim]:
    """Of an answer, in the order of its text."""
    for sentence in sentences(content):
        yield from _in_sentence(content, sentence)


def _in_sentence(content: str, sentence: Span) -> Iterator[Claim]:
    """Cut behind each group of marks; what is left over goes with the last of them."""
    groups: list[list[re.Match[str]]] = []
    start = sentence.start
    for mark in MARK.finditer(content, sentence.start, sentence.end):
        before = content[groups[-1][-1].end() : mark.start()] if groups else ""
        if groups and (
            not before.strip(BETWEEN_MARKS) or _says_little(content[start : mark.start()])
        ):
            groups[-1].append(mark)
        else:
            start = groups[-1][-1].end() if groups else start
            groups.append([mark])
    if not groups:
        yield Claim(sentence, content[sentence.start : sentence.end], ())
        return
    start = sentence.start
    for number, group in enumerate(groups, start=1):
        end = sentence.end if number == len(groups) else group[-1].end()
        text = MARK.sub(" ", content[start:end])
        yield Claim(Span(start, end), text, tuple(group))
        start = end


def _says_little(text: str) -> bool:
    """Such as "According to"."""
    words = WORD.findall(MARK.sub(" ", text))
    return len(words) < FEWEST_WORDS and sum(map(len, words)) < FEWEST_CHARACTERS
