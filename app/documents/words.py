"""What is looked for of a text: folded letters, divided as the text index wants them.

A document and a question go through the same hands, so that what looks the same is the same:
upper and lower case, accents, digits of every script, full-width and presentation forms, vowel
marks. Scripts written without spaces become pairs of characters; words of scripts whose words
change their endings and beginnings a lot become runs of three; all others stay whole, and
SQLite's porter takes off English endings.
"""

import functools
import re
import sys
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from app.documents.stop_words import BY_LANGUAGE, STOP_CHARACTERS, STOP_WORDS

# Han, kana, Hangul; Thai, Lao, Burmese, Khmer.
DENSE = (
    r"\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    r"\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
# Cyrillic, Hebrew, Arabic, the scripts of India.
INFLECTED = r"\u0400-\u052f\u0590-\u06ff\u0750-\u077f\u0900-\u0dff\u1c80-\u1c8f"
IN_RUNS = re.compile(rf"[{DENSE}{INFLECTED}]+")
CYRILLIC = re.compile(r"[\u0400-\u052f\u1c80-\u1c8f]")
PIECE = re.compile(rf"([{DENSE}]+)|([{INFLECTED}]+)|[^\W_{DENSE}{INFLECTED}]+")

# Marks above and below letters, Hebrew points, Arabic vowels, the Arabic filler.
_MARKS = (
    *range(0x300, 0x370),
    *range(0x591, 0x5C8),
    *range(0x610, 0x61B),
    0x640,
    *range(0x64B, 0x660),
    0x670,
    *range(0x6D6, 0x6DD),
    *range(0x6DF, 0x6E9),
    *range(0x6EA, 0x6EE),
)
_DIGITS = {
    code: str(unicodedata.digit(chr(code)))
    for code in range(0x80, sys.maxunicode + 1)
    if unicodedata.category(chr(code)) == "Nd"
}
# Letters of Arabic that are written for one another.
_ARABIC = {0x649: "\u064a", 0x629: "\u0647", 0x6A9: "\u0643", 0x6CC: "\u064a", 0x671: "\u0627"}
# What no eye sees, in the middle of words.
_UNSEEN = (0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0x200E, 0x2010))
# Within the ranges above there are also signs that belong to no word.
_SIGNS = [code for code in range(0x80, 0x3200) if unicodedata.category(chr(code))[0] in "PS"]
FOLD: dict[int, str | None] = {
    **dict.fromkeys(_MARKS),
    **dict.fromkeys(_UNSEEN),
    **dict.fromkeys(_SIGNS, " "),
    **_DIGITS,
    **_ARABIC,
}
SHORTEST_BEGINNING = 5
FOLD_VERSION = 1
"""Of everything here that decides what stands in the index: another one needs a new index."""


def fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", apart).translate(FOLD))


def index_text(text: str) -> str:
    """What the text index is given of a text: its tokens, with spaces between them."""
    return " ".join(tokens(fold(text)))


def tokens(folded: str) -> list[str]:
    found: list[str] = []
    for match in PIECE.finditer(folded):
        dense, inflected = match.groups()
        if dense:
            found += runs(dense, 2)
        elif inflected:
            found += runs(inflected, 3)
        else:
            found.append(match.group())
    return found


def runs(word: str, length: int) -> list[str]:
    """All that stands side by side in it; a shorter word is one of its own."""
    return [word[start : start + length] for start in range(max(1, len(word) - length + 1))]


class Script(StrEnum):
    """How the words of a question are looked for."""

    ENGLISH = "English"
    """Words without their endings."""
    LETTERS = "letters"
    """The same, and as beginnings of longer words: other languages bend and join theirs."""
    CYRILLIC = "Cyrillic"
    """In runs of three, and so are the next."""
    ARABIC = "Arabic"
    """Also Hebrew, and the scripts of India."""
    DENSE = "dense"
    """In pairs."""

    @property
    def is_in_threes(self) -> bool:
        return self in (Script.CYRILLIC, Script.ARABIC)


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a question, and the tokens that stand for it in the index."""

    word: str
    tokens: tuple[str, ...]
    script: Script

    @property
    def beginning(self) -> str:
        """What longer words may begin with, or empty: a number that goes on is another one."""
        ends_in_number = any(each.isdigit() for each in self.word[-2:])
        is_long = len(self.word) > SHORTEST_BEGINNING and not ends_in_number
        return self.word[:-1] if self.script is Script.LETTERS and is_long else ""


@functools.lru_cache(maxsize=256)
def question_terms(question: str) -> tuple[Term, ...]:
    """Its words, each once, without those that every text has; all of them where no other is."""
    folded = fold(question)
    letters = Script.ENGLISH if is_english(folded) else Script.LETTERS
    found: dict[str, Term] = {}
    common: dict[str, Term] = {}
    for match in PIECE.finditer(folded):
        dense, inflected = match.groups()
        word = match.group()
        if dense:
            for piece in filter(None, STOP_CHARACTERS.split(dense)):
                found.setdefault(piece, _term(piece, 2, Script.DENSE))
            common.setdefault(word, _term(word, 2, Script.DENSE))
            continue
        script = letters
        if inflected:
            script = Script.CYRILLIC if CYRILLIC.match(word) else Script.ARABIC
        term = _term(word, 3, script) if inflected else Term(word, (word,), script)
        (common if word in STOP_WORDS else found).setdefault(word, term)
    return tuple((found or common).values())


def is_english(folded: str) -> bool:
    """Whether its small words are those of English, more than of any other language."""
    return "en" in languages(folded)


def languages(folded: str) -> tuple[str, ...]:
    """Those whose small words it has most of; none where it has no small word."""
    words = folded.split()
    num = {name: sum(word in these for word in words) for name, these in BY_LANGUAGE.items()}
    most = max(num.values())
    return tuple(name for name, each in num.items() if most and each == most)


def _term(word: str, length: int, script: Script) -> Term:
    return Term(word, tuple(dict.fromkeys(runs(word, length))), script)
