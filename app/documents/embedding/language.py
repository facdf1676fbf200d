"""In which language a text is: by its script first, then by its small words."""

import re
from collections.abc import Sequence

from app.documents.stop_words import BY_LANGUAGE
from app.documents.words import fold, languages

SAMPLE = 40_000
FEWEST_SMALL = 0.2
"""Of a document's words; a list of figures or a program has fewer. English prose has 0.4."""
_SCRIPTS = {
    "ja": re.compile(r"[\u3040-\u30ff\u31f0-\u31ff]"),
    "ko": re.compile(r"[\uac00-\ud7ff]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
    "zh": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"),
    "ru": re.compile(r"[\u0400-\u052f]"),
    "ar": re.compile(r"[\u0600-\u06ff\u0750-\u077f]"),
    "he": re.compile(r"[\u0590-\u05ff]"),
    "el": re.compile(r"[\u0370-\u03ff]"),
    "hi": re.compile(r"[\u0900-\u0dff]"),
}
"""The script's largest language stands for all that are written in it. Japanese goes before
Chinese, because it has the characters of both."""
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
LETTERS_A_CHARACTER = 3
"""A Chinese character says as much as so many letters."""


def languages_of(text: str) -> tuple[str, ...]:
    """Those in which it may be, of a question; more than one where its small words belong to
    several, none where nothing tells."""
    script = _script_of(text)
    return (script,) if script else languages(fold(text))


def language_of(text: str) -> str:
    """That of a document; empty where nothing tells."""
    sample = text[:SAMPLE]
    script = _script_of(sample)
    if script:
        return script
    folded = fold(sample)
    found = languages(folded)
    words = folded.split()
    if len(found) != 1 or not words:
        return ""
    return found[0] if _small_share(words, found[0]) >= FEWEST_SMALL else ""


def _small_share(words: Sequence[str], language: str) -> float:
    return sum(word in BY_LANGUAGE[language] for word in words) / len(words)


def _script_of(text: str) -> str:
    """The language of a script that has most of the text; empty for Latin letters."""
    num = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS.items()}
    for name in ("ja", "ko", "th", "zh"):
        num[name] *= LETTERS_A_CHARACTER
    if num["ja"] * 10 > num["zh"]:
        # Every Japanese sentence has some kana, and Chinese none.
        num["ja"], num["zh"] = num["ja"] + num["zh"], 0
    most = max(num, key=num.__getitem__)
    return most if num[most] > len(_LATIN.findall(text)) else ""
