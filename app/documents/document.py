"""What is read out of a person's file: its pages in their order, or why there are none."""

from dataclasses import dataclass
from enum import StrEnum

from app.documents.page_picture import Box
from engine.errors import InglenookError


class FileState(StrEnum):
    """The one state that every file of the library is in."""

    WAITING = "waiting"
    INDEXED = "indexed"
    """All of its text is found. Single pages may have none: their flags say so."""
    NO_TEXT = "no text"
    """It was read and there is no text on any page: pictures, or nothing."""
    NEEDS_PASSWORD = "needs password"
    DAMAGED = "damaged"
    EMPTY = "empty"
    """It has no bytes."""
    TOO_LARGE = "too large"
    """Itself, or what it unpacks to."""
    UNSUPPORTED = "unsupported"
    OFFLINE = "offline"
    """Its folder is not there now; what was read of it is kept."""
    FAILED = "failed"
    """Reading it took too much memory or time, or broke: its sentence says what."""


class PageFlag(StrEnum):
    """What a person should know of a page."""

    PICTURE_ONLY = "picture only"
    OCR = "read by OCR"
    """Its text was read from its picture. With no text: OCR found none."""
    GARBLED = "garbled"
    """Its letters make no words: a font without a map to characters."""
    HIDDEN_LEFT_OUT = "hidden text left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """`start` is a place in the text of its page; `path` is all it stands under, outermost first,
    itself last."""

    start: int
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a page's text that OCR has read, from `start` to `end`, and where it stands.

    `is_level`: its letters go from left to right there, so a part of it can be told.
    """

    start: int
    end: int
    box: Box
    is_level: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A piece of a document that a citation can name. `number` counts from 1 without gaps; `label`
    is what people call it ("12", "iv", "Slide 3", "Sheet1", "Chapter 2").

    `text` is in Unicode's NFKC, with `\\n` at the end of a line, an empty line between paragraphs,
    and no other control character. A row of a table is one line, "column: value | column: value".
    `pieces` are in the order of the text, and empty where it was not read by OCR.
    """

    number: int
    label: str
    text: str
    headings: tuple[Heading, ...] = ()
    flags: frozenset[PageFlag] = frozenset()
    pieces: tuple[Piece, ...] = ()

    @property
    def is_unread(self) -> bool:
        """Whether there may be text on it that only OCR can read, and did not yet."""
        return PageFlag.OCR not in self.flags and bool(self.flags & UNREAD)


UNREAD = frozenset({PageFlag.PICTURE_ONLY, PageFlag.GARBLED})


def page_in_words(number: int, label: str) -> str:
    """How a page is called: by its number, and by its label where that says something else."""
    return f"page {number}" if label in ("", str(number)) else f"page {number} ({label})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a file turned out to be. `kind` is its type by content ("pdf", "docx", "eml", ...);
    `title` is its own, or empty; `notice` is one sentence for the user, such as that its ending
    says something else, or empty. `sha256` is that of the bytes that were read."""

    kind: str
    num_pages: int
    title: str = ""
    notice: str = ""
    sha256: str = ""


class Unreadable(InglenookError):
    """There is no text of a file, and `state` says of which kind the reason is."""

    def __init__(self, state: FileState, sentence: str) -> None:
        super().__init__(sentence)
        self.state = state
