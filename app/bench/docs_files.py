"""Documents for a benchmark: texts in which few words are common and most are rare, as in any
language, and PDF files of them. The same seed gives the same files."""

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from app.bench.workload import SEED
from app.documents.stop_words import BY_LANGUAGE

NUM_WORDS = 60_000
"""Of the vocabulary. The small words of English are its commonest."""
PAGE_WORDS = 550
"""As on a page of a report that is filled with text."""
SENTENCE_WORDS = (6, 28)
PARAGRAPH_SENTENCES = 5
LINE_CHARACTERS = 92
_ONSETS = ("b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "br", "pl", "st")
_VOWELS = ("a", "e", "i", "o", "u", "ea", "ou")
_ENDINGS = ("", "n", "r", "s", "t", "l", "nd", "st")


class Texts:
    """Owned by one thread. What is drawn next depends on what was drawn before."""

    def __init__(self, seed: int = SEED) -> None:
        self._chance = np.random.default_rng(seed)
        self.words = (*sorted(BY_LANGUAGE["en"]), *_made_up(NUM_WORDS, self._chance))
        shares = 1.0 / (np.arange(len(self.words)) + 2.7)
        self._upto = np.cumsum(shares / shares.sum())

    def page(self, num_words: int = PAGE_WORDS) -> str:
        """Paragraphs of sentences."""
        left, sentences, paragraphs = num_words, list[str](), list[str]()
        while left > 0:
            length = min(left, int(self._chance.integers(*SENTENCE_WORDS)))
            sentences.append(" ".join(self._drawn(length)).capitalize() + ".")
            left -= length
            if len(sentences) == PARAGRAPH_SENTENCES or left <= 0:
                paragraphs.append(" ".join(sentences))
                sentences = []
        return "\n\n".join(paragraphs)

    def question(self, text: str, num_words: int = 4) -> str:
        """About a text: some of its words, common and rare ones."""
        own = [word for word in text.lower().replace(".", "").split() if len(word) > 3]
        chosen = self._chance.choice(own, num_words)
        return f"What is the {chosen[0]} of {' and '.join(chosen[1:])}?"

    def _drawn(self, num: int) -> list[str]:
        places = np.searchsorted(self._upto, self._chance.random(num))
        return [self.words[place] for place in places.tolist()]


def _made_up(num: int, chance: np.random.Generator) -> Iterator[str]:
    """Each once."""
    syllables = [onset + vowel for onset in _ONSETS for vowel in _VOWELS]
    beginnings = [one + other for one in syllables for other in syllables]
    words = [beginning + ending for beginning in beginnings for ending in _ENDINGS]
    yield from (words[place] for place in chance.permutation(len(words))[:num].tolist())


def write_pdf(path: Path, pages: Sequence[str]) -> None:
    """Each page with its number above, its lines set word by word with kerning as programs do, and
    every fifth one with a table."""
    objects: list[bytes] = [b"", b""]
    for name in (b"Helvetica", b"Times-Roman"):
        objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/%s/Encoding/WinAnsiEncoding>>" % name)
    kids = []
    for number, text in enumerate(pages, start=1):
        content = zlib.compress(_drawing(text, number))
        objects.append(
            b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(content), content)
        )
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R/F2 4 0 R>>>>>>" % len(objects)
        )
        kids.append(len(objects))
    objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
    listed = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (listed, len(kids))
    places = []
    with open(path, "wb") as file:
        file.write(b"%PDF-1.7\n")
        for number, body in enumerate(objects, start=1):
            places.append(file.tell())
            file.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        start = file.tell()
        file.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1))
        file.writelines(b"%010d 00000 n \n" % place for place in places)
        file.write(
            b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(places) + 1, start)
        )


def _drawing(text: str, number: int) -> bytes:
    parts = [_line(f"A report about many things {number}", 72, 760, "F1", 8)]
    y = 740.0
    for paragraph in text.split("\n\n"):
        for line in _wrapped(paragraph):
            parts.append(_line(line, 72, y, "F2", 10))
            y -= 11
        y -= 4
    if number % 5 == 0:
        parts += _table(text.split(), max(y, 60.0))
    return b"".join(parts)


def _wrapped(paragraph: str) -> Iterator[str]:
    line = ""
    for word in paragraph.split():
        if len(line) + len(word) >= LINE_CHARACTERS:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line


def _line(text: str, x: float, y: float, font: str, size: float) -> bytes:
    # Nothing that is written here needs an escape.
    words = " 12.5 ".join(f"({word} )" for word in text.split())
    return f"BT /{font} {size:g} Tf {x:g} {y:g} Td [{words}] TJ ET\n".encode("ascii")


def _table(words: Sequence[str], top: float, rows: int = 4, columns: int = 5) -> Iterator[bytes]:
    for row in range(rows):
        y = top - 12 * row
        yield f"72 {y - 3:g} m 540 {y - 3:g} l S\n".encode("ascii")
        for column in range(columns):
            yield _line(words[row * columns + column], 74 + 92 * column, y, "F1", 9)
