"""A page of a PDF or of a picture file as a picture, and the places of some of a PDF's words on it.
For the reading process alone."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pypdfium2
import pypdfium2.raw as pdfium

from app.documents.document import FileState, Unreadable
from app.documents.kinds import NAMES, Kind
from app.documents.page_picture import (
    MOST_BOXES,
    MOST_PIXELS,
    Box,
    PagePicture,
    PictureWish,
    letters_of,
)
from app.documents.parsers import picture
from app.documents.parsers.pdf import opened
from app.documents.parsers.pdf_hidden import hidden_places
from app.documents.parsers.source import Source
from app.documents.png import png_of
from app.documents.sniff import sniff

SHARPNESS = 2.0
"""Pixels for each point of the paper, where that makes no larger picture than allowed."""
MARGIN = 0.003
"""Around the letters, as a share of the picture."""


def draw(data: bytes, name: str, password: str, wish: PictureWish) -> PagePicture:
    """Raises Unreadable."""
    kind, encoding, _ = sniff(data, name)
    if kind is Kind.PICTURE:
        return picture.drawn(data, name, wish.number)
    if kind is not Kind.PDF:
        raise Unreadable(
            FileState.UNSUPPORTED,
            f"{name} is now a {NAMES[kind]}, which has no pages to be drawn.",
        )
    document = opened(Source(data=data, name=name, kind=kind, encoding=encoding, password=password))
    try:
        num_pages = len(document)
        if not 1 <= wish.number <= num_pages:
            raise Unreadable(
                FileState.FAILED, f"{name} has no page {wish.number}: its last one is {num_pages}."
            )
        # What was filled into a form is drawn with it.
        document.init_forms()
        page = document[wish.number - 1]
        try:
            return _drawn(page, wish)
        finally:
            page.close()
    except (pypdfium2.PdfiumError, ValueError) as error:
        raise Unreadable(
            FileState.DAMAGED, f"Page {wish.number} of {name} is damaged and cannot be drawn."
        ) from error
    finally:
        document.close()


def _drawn(page: pypdfium2.PdfPage, wish: PictureWish) -> PagePicture:
    longest = max(page.get_size())
    # A little less, since the sides are rounded up.
    scale = min(SHARPNESS, (MOST_PIXELS - 0.5) / longest)
    bitmap = page.render(scale=scale, rev_byteorder=True)
    try:
        pixels = memoryview(bitmap.buffer).cast("B")
        png = png_of(pixels, bitmap.width, bitmap.height, bitmap.stride)
        pixels.release()
        boxes = tuple(_boxes(page, bitmap, wish))
        return PagePicture(png=png, width=bitmap.width, height=bitmap.height, boxes=boxes)
    finally:
        bitmap.close()


def _boxes(
    page: pypdfium2.PdfPage, bitmap: pypdfium2.PdfBitmap, wish: PictureWish
) -> Iterator[Box]:
    text_page = page.get_textpage()
    try:
        to_picture = bitmap.get_posconv(page).to_bitmap
        num_left = MOST_BOXES
        for first, last in _stretches(page, text_page, wish):
            num = min(text_page.count_rects(first, last + 1 - first), num_left)
            num_left -= num
            for number in range(num):
                left, bottom, right, top = text_page.get_rect(number)
                corners = [to_picture(left, bottom), to_picture(right, top)]
                yield _box(corners, bitmap.width, bitmap.height)
    finally:
        text_page.close()


def _box(corners: Sequence[tuple[float, float]], width: int, height: int) -> Box:
    """On a page that is turned, any corner may be the upper left one."""
    left, right = _edges([x / width for x, _ in corners])
    top, bottom = _edges([y / height for _, y in corners])
    return Box(left, top, right - left, bottom - top)


def _edges(places: Sequence[float]) -> tuple[float, float]:
    first, last = min(places) - MARGIN, max(places) + MARGIN
    return min(max(first, 0.0), 1.0), min(max(last, 0.0), 1.0)


def _stretches(
    page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage, wish: PictureWish
) -> list[tuple[int, int]]:
    """The words that are wanted, as stretches of the page's characters: all of them as one, or
    else line by line where something stands between them, such as what nobody sees."""
    letters, places = _letters(page, text_page)
    whole = letters_of(wish.words)
    if not whole:
        return []
    start = _nearest(letters, whole, wish.num_before)
    if start is not None:
        return [(places[start], places[start + len(whole) - 1])]
    found: list[tuple[int, int]] = []
    at = wish.num_before
    for line in wish.words.split("\n"):
        wanted = letters_of(line)
        start = _nearest(letters, wanted, at) if wanted else None
        if start is not None:
            at = start + len(wanted)
            found.append((places[start], places[at - 1]))
    return _joined(found)


def _joined(stretches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """None twice."""
    kept = sorted(set(stretches))
    return kept[:1] + [later for before, later in pairwise(kept) if later[0] > before[1]]


def _letters(page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage) -> tuple[str, list[int]]:
    """The letters of the page that are seen, and of which character each is."""
    hidden = hidden_places(page, text_page)
    visible = hidden.visible if hidden else [(0, text_page.count_chars())]
    letters: list[str] = []
    places: list[int] = []
    for start, count in visible:
        for place in range(start, start + count):
            of_one = letters_of(chr(pdfium.FPDFText_GetUnicode(text_page, place) & 0xFFFF))
            letters += of_one
            places += [place] * len(of_one)
    return "".join(letters), places


def _nearest(letters: str, wanted: str, place: int) -> int | None:
    """Where `wanted` begins nearest to `place`. None: nowhere."""
    after = letters.find(wanted, max(place, 0))
    before = letters.rfind(wanted, 0, max(place, 0) + len(wanted))
    found = [start for start in (before, after) if start >= 0]
    return min(found, key=lambda start: abs(start - place), default=None)
