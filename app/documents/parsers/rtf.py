"""RTF: the text between its control words, in the code page that each of them is written in.

{\\rtf1\\ansi\\ansicpg1252 {\\fonttbl ...} Plain {\\b bold} \\u8364? \\'80 \\par}
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from app.documents.blocks import Block, paginate
from app.documents.cleaning import one_line
from app.documents.document import Facts, Page
from app.documents.kinds import Kind
from app.documents.parsers.source import Source
from app.documents.tables import plain

TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+"
    rb"|([^\\{}\r\n]+)"
)
_NOT_TEXT = (
    "fonttbl colortbl stylesheet info pict object header headerl headerr headerf footer footerl"
    " footerr footerf listtable listoverridetable rsidtbl generator themedata datastore"
    " latentstyles xmlnstbl fldinst bkmkstart bkmkend annotation atnid atnauthor revtbl filetbl"
    " nonshppict objdata colorschememapping pgdsctbl defchp defpap wgrffmtfilter mmathPr"
)
NOT_TEXT = frozenset(_NOT_TEXT.split())
"""Groups whose text belongs to no paragraph."""
SIGNS = {
    "tab": " ",
    "line": "\n",
    "emdash": "\u2014",
    "endash": "\u2013",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "softline": "\n",
    "zwnj": "\u200c",
}
CHARSETS = {
    0: "cp1252",
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    134: "gbk",
    136: "big5",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
}
MOST_DEPTH = 10_000
MOST_PARAGRAPH = 200_000


@dataclass(frozen=True, slots=True)
class _State:
    """What holds within a pair of braces."""

    is_text: bool = True
    is_hidden: bool = False
    skip: int = 1
    """Signs after a `\\u` that old readers show in its place."""
    encoding: str = ""


def read(source: Source) -> Iterator[Page | Facts]:
    found = _Rtf(source.data)
    yield from paginate(found.blocks(), "Paragraph")
    yield Facts(kind=Kind.RTF, num_pages=0, title=found.title())


class _Rtf:
    """One file, read once from its beginning to its end. Owned by `read`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._state = _State()
        self._stack: list[_State] = []
        self._encoding = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._bytes = bytearray()
        self._text: list[str] = []
        self._length = 0
        self._cells: list[str] = []
        self._to_skip = 0
        self._is_marked = False
        self._hides = False

    def title(self) -> str:
        found = re.search(rb"\{\\title ([^{}\\]{1,500})\}", self._data[:100_000])
        return one_line(found[1].decode(self._encoding, "replace")) if found else ""

    def blocks(self) -> Iterator[Block]:
        for token in TOKEN.finditer(self._data):
            word, number, code, sign, brace, text = token.groups()
            if word is not None:
                if word == b"bin":
                    # What follows is no text; its bytes are passed over as unseen tokens.
                    self._to_skip += min(int(number or 0), 1_000_000)
                yield from self._word(word.decode(), int(number) if number else None)
            elif code is not None:
                self._put_bytes(bytes.fromhex(code.decode()), is_code=True)
            elif sign is not None:
                self._sign(sign)
            elif brace is not None:
                self._brace(brace)
            elif text is not None:
                self._put_bytes(text)
        yield from self._end()

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._to_skip = 0
        self._is_marked = False
        if brace == b"{":
            if len(self._stack) >= MOST_DEPTH:
                raise ValueError("groups in groups without end")
            self._stack.append(self._state)
        elif self._stack:
            self._state = self._stack.pop()

    def _sign(self, sign: bytes) -> None:
        if sign == b"*":
            self._is_marked = True
        elif sign in (b"~", b"_", b"\\", b"{", b"}"):
            self._put({b"~": " ", b"_": "-"}.get(sign, sign.decode()))
        elif sign in (b"\n", b"\r"):
            self._put("\n")

    def _word(self, word: str, number: int | None) -> Iterator[Block]:
        is_marked, self._is_marked = self._is_marked, False
        if word == "u" and number is not None:
            self._put(chr(number % 0x10000))
            self._to_skip = self._state.skip
        elif word in SIGNS:
            self._put(SIGNS[word])
        elif word in ("par", "sect", "page"):
            yield from self._end()
        elif word == "cell":
            self._flush()
            self._cells.append(one_line(_paired(self._text)))
            self._text, self._length = [], 0
        elif word == "row":
            self._flush()
            row, self._cells = plain(self._cells), []
            yield Block(text=row, follows=True, hides=self._hides)
            self._hides = False
        elif word in NOT_TEXT or is_marked and word not in ("shppict", "shpinst", "shptxt"):
            self._flush()
            self._state = replace(self._state, is_text=False)
            self._font = number or 0 if word == "f" else self._font
        else:
            self._setting(word, number)

    def _setting(self, word: str, number: int | None) -> None:
        """A word that changes how the next text is read."""
        if word in ("v", "deleted"):
            self._flush()
            self._state = replace(self._state, is_hidden=number != 0)
        elif word == "plain":
            self._flush()
            self._state = replace(self._state, is_hidden=False)
        elif word == "uc" and number is not None:
            self._state = replace(self._state, skip=min(max(number, 0), 10))
        elif word == "ansicpg" and number is not None:
            self._encoding = _known(f"cp{number}") or self._encoding
        elif word == "fcharset" and number in CHARSETS:
            self._fonts[self._font] = CHARSETS[number]
        elif word == "f" and number is not None:
            self._flush()
            self._font = number
            # Only a font of another script changes the code page.
            found = self._fonts.get(number, "cp1252")
            self._state = replace(self._state, encoding="" if found == "cp1252" else found)

    def _put_bytes(self, data: bytes, is_code: bool = False) -> None:
        if self._to_skip:
            passed = min(self._to_skip, 1 if is_code else len(data))
            self._to_skip -= passed
            data = data[passed:]
        if data and self._state.is_text:
            self._bytes += data

    def _put(self, text: str) -> None:
        self._flush()
        self._add(text)

    def _flush(self) -> None:
        """Bytes of one code page are decoded together: a letter may have two."""
        if self._bytes:
            text = bytes(self._bytes).decode(self._state.encoding or self._encoding, "replace")
            self._bytes.clear()
            self._add(text)

    def _add(self, text: str) -> None:
        if not self._state.is_text:
            return
        if self._state.is_hidden:
            self._hides = self._hides or bool(text.strip())
        elif self._length < MOST_PARAGRAPH:
            self._text.append(text)
            self._length += len(text)

    def _end(self) -> Iterator[Block]:
        self._flush()
        text, self._text, self._length = _paired(self._text), [], 0
        if self._cells:
            # A paragraph within a cell.
            self._text, self._length = [text, " "], len(text) + 1
            return
        hides, self._hides = self._hides, False
        yield Block(text=text, hides=hides)


def _paired(pieces: list[str]) -> str:
    """Signs beyond the first 65,536 are written as two halves."""
    return "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _known(encoding: str) -> str | None:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return None
