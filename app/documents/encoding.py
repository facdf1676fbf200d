"""Which encoding a text of unknown origin is in."""

import codecs
import io
from collections.abc import Iterator

from charset_normalizer import from_bytes

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE_BYTES = 64_000
# Which letters beyond ASCII the languages have that each encoding was made for.
LATIN = {
    "cp1252": (
        *("äöüß", "àâçéèêëîïôùûœæ", "áéíóúñü¿¡ºª", "ãõáéíóúâêôçàºª", "àèéìòùî", "åäöæøé"),
        *("ëïéèöüáó", "þðæöáéíóúý"),
    ),
    "cp1250": ("ąćęłńóśźż", "áčďéěíňóřšťúůýžľĺŕôä", "áéíóöőúüű", "ăâîşţ", "čćđšž"),
    "cp1254": ("çğıöşüâîi̇",),
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"),
}
SIGNS_OF_ALL = frozenset("„“”‚‘’«»–—…€£§°·±×®©²³½\xa0•")
MOST_HIGH = 0.3
"""The share of bytes beyond ASCII among the letters of a text in Latin script."""
LEAST_FITTING = 0.75
# Short texts look like many things; these are what files are really in.
USUAL = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874"),
    *("koi8_r", "cp932", "euc_jp", "gb18030", "big5", "euc_kr", "cp437", "cp850", "cp866"),
)
MOST_LINE = 100_000
"""Characters; a longer line is cut into such."""


def encoding_of(data: bytes) -> str | None:
    """Its name for `codecs`. None: this is no text."""
    for mark, name in MARKS:
        if data.startswith(mark):
            return name
    sample = data[:SAMPLE_BYTES]
    if b"\0" in sample:
        return _wide_without_mark(sample)
    if _is_utf8(data):
        return "utf-8"
    if _share_of_controls(sample) > 0.05:
        return None
    return _guessed(sample)


def decode(data: bytes, encoding: str | None = None) -> str:
    """All of a text that is small. What cannot be decoded becomes U+FFFD."""
    found = encoding or encoding_of(data) or "utf-8"
    try:
        return data.decode(found, "replace")
    except LookupError:
        return data.decode(encoding_of(data) or "utf-8", "replace")


def lines(data: bytes, encoding: str) -> Iterator[str]:
    """Without their ends; only one of them is held at a time."""
    stream = io.TextIOWrapper(io.BytesIO(data), encoding, errors="replace")
    while line := stream.readline(MOST_LINE):
        yield line.rstrip("\n")


def _is_utf8(data: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), 1_000_000):
            decoder.decode(data[start : start + 1_000_000])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _wide_without_mark(sample: bytes) -> str | None:
    """UTF-16 of mostly Latin letters has a zero in every other byte."""
    for name, zeros, letters in (
        ("utf-16-le", sample[1::2], sample[0::2]),
        ("utf-16-be", sample[0::2], sample[1::2]),
    ):
        if zeros.count(0) > 0.6 * len(zeros) and letters.count(0) <= 0.02 * len(letters):
            return name
    return None


def _share_of_controls(sample: bytes) -> float:
    plain = sample.translate(None, bytes([*range(9), 11, *range(14, 27), *range(28, 32), 127]))
    return 1 - len(plain) / len(sample)


def _guessed(sample: bytes) -> str:
    """Of a text that is not in UTF-8."""
    # Cut at the end of a line: half of a letter would spoil the guess.
    whole = sample[: sample.rfind(b"\n") + 1] if len(sample) == SAMPLE_BYTES else sample
    sample = whole or sample
    if found := _latin(sample):
        return found
    best = from_bytes(sample, cp_isolation=list(USUAL)).best()
    return best.encoding if best else "cp1252"


def _latin(sample: bytes) -> str | None:
    """The encoding whose languages have the letters of this text. None: it is in another script."""
    num_high = sum(byte > 127 for byte in sample)
    num_plain = sum(chr(byte).isalpha() for byte in sample if byte < 128)
    if num_high > MOST_HIGH * (num_high + num_plain):
        return None
    best, best_share = None, LEAST_FITTING
    for encoding, languages in LATIN.items():
        high = sample.translate(None, bytes(range(128))).decode(encoding, "replace").lower()
        letters = [letter for letter in high if letter not in SIGNS_OF_ALL]
        if not letters:
            return encoding
        share = max(sum(map(language.__contains__, letters)) for language in languages)
        if share / len(letters) > best_share:
            best, best_share = encoding, share / len(letters)
    return best
