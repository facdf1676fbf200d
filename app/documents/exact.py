"""What of a sentence must stand in a passage as it is: its numbers, and the names of things.

One number is written in many ways: 1,234 and 1 234 and 1.234 are one, and 1.234 may be another one
as well. So each is a set of readings, and two are the same when they share one.
"""

import re
import unicodedata
from dataclasses import dataclass

from app.documents.stop_words import STOP_WORDS
from app.documents.words import FOLD, fold, languages

NUMBER = re.compile(r"\d+(?:[.,'’·٫٬ \u00a0\u202f\u2009]\d+)*")
BETWEEN = re.compile(r"[.,'’·٫٬ \u00a0\u202f\u2009]")
LIST_MARK = re.compile(r"\s*(?:\d{1,2}[.)]|[-*•–])\s+")
WORD = re.compile(r"[^\W\d_][\w'’-]*")
HYPHENS = re.compile("[\u2010-\u2015\u2212]")
DIGITS = {code: value for code, value in FOLD.items() if value is not None and value.isdigit()}

Readings = frozenset[str]


@dataclass(frozen=True, slots=True)
class Exact:
    """`names` are single words, as they are written."""

    numbers: tuple[Readings, ...]
    names: frozenset[str]


def nouns_have_capitals(text: str) -> bool:
    """Whether it is in German, where a capital does not make a name."""
    spoken = languages(fold(text))
    return "de" in spoken and "en" not in spoken


def exact_in(text: str, *, has_names: bool = True) -> Exact:
    """Of a sentence. A word that begins it may have its capital for that, and counts as a name
    only where another name follows. `has_names`: names can be told by their capitals."""
    plain = _plain(text)
    mark = LIST_MARK.match(plain)
    body = plain[mark.end() :] if mark is not None else plain
    return Exact(tuple(numbers_in(body)), frozenset(_names(body) if has_names else ()))


def numbers_in(text: str) -> list[Readings]:
    return [each for match in NUMBER.finditer(_plain(text)) for each in _readings(match.group())]


def has_numbers(numbers: tuple[Readings, ...], there: list[Readings]) -> bool:
    """All of them are there."""
    found = frozenset[str]().union(*there)
    return all(not each.isdisjoint(found) for each in numbers)


def _plain(text: str) -> str:
    return HYPHENS.sub("-", unicodedata.normalize("NFKC", text).translate(DIGITS))


def _readings(written: str) -> list[Readings]:
    """Mostly one number; digits with spaces or commas between them may also be several."""
    parts = BETWEEN.split(written)
    signs = BETWEEN.findall(written)
    if len(parts) == 1:
        return [frozenset({_whole(written)})]
    is_grouped = all(len(part) == 3 for part in parts[1:]) and len(parts[0]) <= 3
    last = len(parts[-1])
    readings = set()
    if is_grouped and len(set(signs)) == 1:
        readings.add(_whole("".join(parts)))
    if signs[-1] in ".,·٫":
        before = parts[:-1]
        if len(before) == 1 or all(len(part) == 3 for part in before[1:]):
            readings.add(f"{_whole(''.join(before))}.{parts[-1].rstrip('0') or '0'}")
    if not readings or (last != 3 and signs[-1] not in ".,·٫"):
        return [frozenset({_whole(part)}) for part in parts]
    return [frozenset(readings)]


def _whole(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _names(text: str) -> list[str]:
    words = list(WORD.finditer(text))
    names = [word.group() for word in words[1:] if _is_capital(word.group())]
    if names and _is_capital(words[0].group()) and names[0] == words[1].group():
        # Nothing but a space between them makes one name of two.
        is_one = text[words[0].end() : words[1].start()] == " "
        names += [words[0].group()] if is_one else []
    return names


def _is_capital(word: str) -> bool:
    return word[0].isupper() and len(word) > 1 and fold(word) not in STOP_WORDS
