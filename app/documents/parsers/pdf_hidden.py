"""Which characters of a PDF's page nobody sees: white on nothing, too small, outside, or painted
with no ink where there is no picture (in a scan that is what OCR wrote, and stays)."""

from ctypes import CFUNCTYPE, addressof, c_float, c_int, c_uint, c_void_p, cast
from math import hypot
from typing import Any, NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium

LEAST_WHITE = 250
"""Of 255, in each of red, green and blue."""
LEAST_ALPHA = 6
LEAST_SIZE = 2.0
"""Of letters, in points."""
MOST_OBJECTS = 20_000
MOST_DEPTH = 3
INK_FREE = (3, 7)
"""Text rendering modes that paint nothing."""
COVERS = (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_SHADING, pdfium.FPDF_PAGEOBJ_FORM)


def _with_numbers(name: str, result: Any, *arguments: Any) -> Any:
    """A function of pdfium that takes and gives addresses as numbers: a page has hundreds of
    objects, and a typed pointer for each costs four times as much (7 against 1.6 us an object)."""
    address = cast(getattr(pdfium, name), c_void_p).value
    assert address is not None
    return CFUNCTYPE(result, *arguments)(address)


_ADDRESS = c_void_p
count_on_page = _with_numbers("FPDFPage_CountObjects", c_int, _ADDRESS)
get_on_page = _with_numbers("FPDFPage_GetObject", _ADDRESS, _ADDRESS, c_int)
count_in_form = _with_numbers("FPDFFormObj_CountObjects", c_int, _ADDRESS)
get_in_form = _with_numbers("FPDFFormObj_GetObject", _ADDRESS, _ADDRESS, c_int)
kind_of = _with_numbers("FPDFPageObj_GetType", c_int, _ADDRESS)
mode_of = _with_numbers("FPDFTextObj_GetTextRenderMode", c_int, _ADDRESS)
color_of = _with_numbers("FPDFPageObj_GetFillColor", c_int, *[_ADDRESS] * 5)
bounds_of = _with_numbers("FPDFPageObj_GetBounds", c_int, *[_ADDRESS] * 5)
size_of = _with_numbers("FPDFTextObj_GetFontSize", c_int, *[_ADDRESS] * 2)
matrix_of = _with_numbers("FPDFPageObj_GetMatrix", c_int, *[_ADDRESS] * 2)
draw_mode_of = _with_numbers("FPDFPath_GetDrawMode", c_int, *[_ADDRESS] * 3)
owner_of = _with_numbers("FPDFText_GetTextObject", _ADDRESS, _ADDRESS, c_int)


class Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float

    def holds(self, x: float, y: float) -> bool:
        return self.left <= x <= self.right and self.bottom <= y <= self.top


class Places(NamedTuple):
    """`visible` are the stretches of characters that remain, each with its start and count."""

    visible: list[tuple[int, int]]


def hidden_places(page: pypdfium2.PdfPage, text_page: pypdfium2.PdfTextPage) -> Places | None:
    """None: everything on the page can be seen."""
    search = _Search(Box(*page.get_bbox()))
    search.look(cast(page.raw, c_void_p).value, count_on_page, get_on_page)
    hidden = search.hidden()
    return _remaining(text_page, hidden) if hidden else None


class _Search:
    """Over the objects of one page, in the order in which they are painted. Owned by
    `hidden_places`."""

    def __init__(self, sheet: Box) -> None:
        self._sheet = sheet
        self._painted: list[tuple[int, int]] = []
        self._has_picture = False
        self._hidden: set[int] = set()
        self._ink_free: set[int] = set()
        self._left = MOST_OBJECTS
        # Filled in by each call: making them anew costs more than the calls.
        self._color = (c_uint * 4)()
        self._edges = (c_float * 4)()
        self._modes = (c_int * 2)()
        self._matrix = (c_float * 6)()
        self._color_places = [addressof(self._color) + 4 * place for place in range(4)]
        self._edge_places = [addressof(self._edges) + 4 * place for place in range(4)]
        self._matrix_place = addressof(self._matrix)
        self._mode_places = [addressof(self._modes), addressof(self._modes) + 4]

    def hidden(self) -> set[int]:
        """The addresses of the pieces of text."""
        return self._hidden if self._has_picture else self._hidden | self._ink_free

    def look(self, holder: int | None, count: Any, get: Any, depth: int = 0) -> None:
        for index in range(min(count(holder), self._left)):
            self._left -= 1
            one = get(holder, index)
            kind = kind_of(one)
            if kind == pdfium.FPDF_PAGEOBJ_TEXT:
                self._look_at_text(one, depth)
                continue
            self._has_picture |= kind == pdfium.FPDF_PAGEOBJ_IMAGE
            if depth == 0:
                self._painted.append((kind, one))
            if kind == pdfium.FPDF_PAGEOBJ_FORM and depth < MOST_DEPTH:
                # Its places are its own, so only what needs none is asked of what is inside.
                self.look(one, count_in_form, get_in_form, depth + 1)

    def _look_at_text(self, one: int, depth: int) -> None:
        if mode_of(one) in INK_FREE:
            self._ink_free.add(one)
            return
        if depth or not bounds_of(one, *self._edge_places):
            return
        left, bottom, right, top = self._edges
        if left == right:
            return
        x, y = (left + right) / 2, (bottom + top) / 2
        # A dot or a dash is as flat as tiny letters are.
        is_flat = min(top - bottom, right - left) < LEAST_SIZE
        if (
            is_flat
            and self._size(one) < LEAST_SIZE
            or not self._sheet.holds(x, y)
            or self._is_white(one)
            and not self._is_covered(x, y)
        ):
            self._hidden.add(one)

    def _size(self, one: int) -> float:
        """Of its letters on the paper, in points."""
        if not size_of(one, self._edge_places[0]):
            return LEAST_SIZE
        size = self._edges[0]
        if not matrix_of(one, self._matrix_place):
            return LEAST_SIZE
        return float(size) * hypot(self._matrix[2], self._matrix[3])

    def _is_white(self, one: int) -> bool:
        """Or as good as transparent."""
        if not color_of(one, *self._color_places):
            return False
        red, green, blue, alpha = self._color
        return min(red, green, blue) >= LEAST_WHITE or alpha < LEAST_ALPHA

    def _is_covered(self, x: float, y: float) -> bool:
        """Whether something that is not white was painted there before."""
        return any(
            (kind in COVERS or kind == pdfium.FPDF_PAGEOBJ_PATH and self._is_filled(one))
            and bounds_of(one, *self._edge_places)
            and Box(*self._edges).holds(x, y)
            for kind, one in self._painted
        )

    def _is_filled(self, one: int) -> bool:
        draw_mode_of(one, *self._mode_places)
        return bool(self._modes[0]) and not self._is_white(one)


def _remaining(text_page: pypdfium2.PdfTextPage, hidden: set[int]) -> Places:
    visible: list[tuple[int, int]] = []
    start: int | None = 0
    count = text_page.count_chars()
    address = cast(text_page.raw, c_void_p).value
    for index in range(count):
        owner = owner_of(address, index)
        # Spaces and line ends that pdfium has added belong to nobody, and go with what is before.
        if not owner:
            continue
        if owner in hidden:
            if start is not None and start < index:
                visible.append((start, index - start))
            start = None
        elif start is None:
            start = index
    if start is not None and start < count:
        visible.append((start, count - start))
    return Places(visible)
