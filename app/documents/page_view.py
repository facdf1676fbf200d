"""A page of a document as a person looks at it: its text, what of it is meant, and its file now."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from sqlite_utils import Database as Tables

from app.documents.citation import Span
from app.documents.document import FileState, Unreadable
from app.documents.kinds import DRAWN
from app.documents.page_picture import Box, PictureWish, letters_of
from app.documents.pieces import boxes_of, pieces_from
from app.documents.quotation import Quotation
from app.documents.rows import path_from
from app.documents.scan import Stamp, sha256_of, stamp_of
from engine.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """From `start` in the text of `page` to `end` in that of `page_to`."""

    page: int
    page_to: int
    start: int
    end: int

    def on(self, number: int, text: str) -> tuple[int, int]:
        """Its part of a page with this text; empty where it has none."""
        if not self.page <= number <= self.page_to:
            return 0, 0
        start = self.start if number == self.page else 0
        end = self.end if number == self.page_to else len(text)
        start = min(max(start, 0), len(text))
        return start, max(start, min(end, len(text)))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the bytes of a document lie, as they were last seen there."""

    path: str
    stamp: Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """`start` and `end` are what is meant of its text; the same: nothing in particular. `flags` are
    those of the page, `sha256` is that of what was read."""

    document_id: int
    number: int
    label: str
    num_pages: int
    title: str
    kind: str
    flags: tuple[str, ...]
    text: str
    start: int
    end: int
    sha256: str
    places: tuple[Place, ...]
    boxes: tuple[Box, ...] = ()
    """Of what is meant, where the text was read by OCR: the file itself does not tell."""

    @property
    def can_be_drawn(self) -> bool:
        return self.kind in DRAWN

    @property
    def quote(self) -> str:
        return self.text[self.start : self.end]

    @property
    def wish(self) -> PictureWish:
        num_before = len(letters_of(self.text[: self.start]))
        return PictureWish(number=self.number, words=self.quote, num_before=num_before)


def page_view(tables: Tables, document_id: int, number: int, stretch: Stretch | None) -> PageView:
    """Raises UsageError for what is not there."""
    found = tables.execute(
        "select title, kind, num_pages, sha256 from document where id = ?", [document_id]
    ).fetchone()
    if found is None:
        raise UsageError(
            "What was read of this file is no longer in the library: the file has changed since,"
            " was deleted, or was taken out of it."
        )
    title, kind, num_pages, sha256 = found
    page = tables.execute(
        "select label, flags, text, pieces from page where document_id = ? and number = ?",
        [document_id, number],
    ).fetchone()
    if page is None:
        raise UsageError(f"There is no page {number}: this file has {num_pages}.")
    label, flags, text, pieces = page
    start, end = stretch.on(number, text) if stretch else (0, 0)
    rows = tables.execute(
        "select path, size, mtime_ns from file where document_id = ? order by path", [document_id]
    )
    return PageView(
        document_id=document_id,
        number=number,
        label=label,
        num_pages=num_pages,
        title=title,
        kind=kind,
        flags=tuple(flag for flag in flags.split(",") if flag),
        text=text,
        start=start,
        end=end,
        sha256=sha256,
        places=tuple(Place(path_from(path), Stamp(size, at)) for path, size, at in rows),
        boxes=boxes_of(pieces_from(pieces), start, end),
    )


def document_of(tables: Tables, sha256: str) -> int | None:
    """What was read of these bytes; None: nothing that is still here."""
    found = tables.execute("select id from document where sha256 = ?", [sha256]).fetchone()
    return None if found is None else int(found[0])


def stretch_of(quotation: Quotation, part: Span | None, text: str) -> Stretch:
    """Where a quotation, or a part of it, stands now; `text` is that of its first page."""
    if quotation.page != quotation.page_to:
        return _stretch_overleaf(quotation, part, text)
    start = quotation.start
    if text[start : start + len(quotation.text)] != quotation.text:
        # An older version has read it differently.
        start = text.find(quotation.text)
    if start < 0:
        return Stretch(page=quotation.page, page_to=quotation.page, start=0, end=0)
    end = start + len(quotation.text)
    if part is not None and part.start < part.end:
        start, end = start + part.start, start + part.end
    return Stretch(page=quotation.page, page_to=quotation.page, start=start, end=end)


def _stretch_overleaf(quotation: Quotation, part: Span | None, text: str) -> Stretch:
    """All of it where it is not known which of its pages the part stands on."""
    page, page_to, start, end = quotation.page, quotation.page_to, quotation.start, quotation.end
    first = text[start:]
    turn = len(first)
    # Two pages are joined by one line end.
    is_two_pages = len(quotation.text) == turn + 1 + end
    is_as_read = is_two_pages and quotation.text.startswith(f"{first}\n")
    if part is None or part.start >= part.end or not is_as_read:
        return Stretch(page=page, page_to=page_to, start=start, end=end)
    if part.start < turn:
        start += part.start
    else:
        page, start = page_to, max(0, part.start - turn - 1)
    if part.end <= turn:
        page_to, end = page, quotation.start + part.end
    else:
        end = part.end - turn - 1
    return Stretch(page=page, page_to=page_to, start=start, end=end)


async def place_of(view: PageView) -> Place:
    """Where the bytes that were read lie now. Raises Unreadable: they are gone, or others."""
    reasons = []
    for place in view.places:
        try:
            if await asyncio.to_thread(_is_as_read, place, view.sha256):
                return place
            reasons.append(f"{place.path} has changed since it was read")
        except OSError as error:
            reasons.append(f"{place.path} cannot be opened now ({error.strerror or error})")
    raise Unreadable(FileState.OFFLINE, _not_there(reasons))


def _is_as_read(place: Place, sha256: str) -> bool:
    """Raises OSError."""
    return stamp_of(place.path) == place.stamp or sha256_of(place.path) == sha256


def _not_there(reasons: Sequence[str]) -> str:
    return f"{', and '.join(reasons)}: this is the text as it was read."
