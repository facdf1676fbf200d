"""A picture file as a document: each picture in it is a page without text, which OCR may read. Its
size is known from its header, before any of it is decoded."""

import io
import warnings
from collections.abc import Iterator

from PIL import Image

from app.documents.document import Facts, FileState, Page, PageFlag, Unreadable
from app.documents.kinds import Kind
from app.documents.page_picture import MOST_PIXELS, PagePicture
from app.documents.parsers.broken import BY_LIBRARIES
from app.documents.parsers.source import Source
from app.documents.png import png_of
from app.media.picture import flattened

FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP")
MOST_DECODED = 100_000_000
"""Pixels of one picture: in colour they take 0.3 GB, and turning them takes as much again."""
MOST_FRAMES = 2_000
_ORIENTATION = 0x0112
"""How a camera was held, among what it writes beside a picture."""


def read(source: Source) -> Iterator[Page | Facts]:
    picture = opened(source.data, source.name)
    num_pages = num_frames(picture)
    yield Facts(kind=Kind.PICTURE, num_pages=num_pages)
    for number in range(1, num_pages + 1):
        go_to(picture, number, source.name)
        flags = frozenset({PageFlag.PICTURE_ONLY})
        yield Page(number=number, label=str(number), text="", flags=flags)
    yield Facts(kind=Kind.PICTURE, num_pages=num_pages)


def opened(data: bytes, name: str) -> Image.Image:
    """Raises Unreadable."""
    try:
        with warnings.catch_warnings():
            # What Pillow only warns of is checked by `go_to`.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            return Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise _too_large(name) from error
    except BY_LIBRARIES as error:
        raise _damaged(name) from error


def num_frames(picture: Image.Image) -> int:
    """Of a film the first one; several pages are what a scanner puts into one TIFF."""
    if picture.format != "TIFF":
        return 1
    return min(int(getattr(picture, "n_frames", 1)), MOST_FRAMES)


def go_to(picture: Image.Image, number: int, name: str) -> None:
    """To one of its pages, counted from 1. Raises Unreadable for one that is too large."""
    try:
        if number > 1 or picture.tell() > 0:
            picture.seek(number - 1)
    except Image.DecompressionBombError as error:
        raise _too_large(name) from error
    except BY_LIBRARIES as error:
        raise _damaged(name) from error
    if picture.width * picture.height > MOST_DECODED:
        raise _too_large(name, picture.width, picture.height)
    if min(picture.size) < 1:
        raise _damaged(name)


def pixels(picture: Image.Image, number: int, longest: int, name: str) -> Image.Image:
    """One of its pages upright, in three colours on white, and no longer than `longest`. Raises
    Unreadable."""
    go_to(picture, number, name)
    try:
        # A JPEG can be read smaller than it is, which saves most of the work.
        picture.draft("RGB", (longest, longest))
        page = picture.copy() if picture.format == "TIFF" else picture
        exif = page.getexif().get(_ORIENTATION, 1)
        if page.mode in ("1", "P"):
            # Made smaller as they are, thin lines would go.
            page = page.convert("L" if page.mode == "1" else "RGBA")
        page.thumbnail((longest, longest), Image.Resampling.LANCZOS)
        turn = _TURNS.get(exif)
        return flattened(page if turn is None else page.transpose(turn))
    except Image.DecompressionBombError as error:
        raise _too_large(name) from error
    except BY_LIBRARIES as error:
        raise _damaged(name) from error


_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def drawn(data: bytes, name: str, number: int) -> PagePicture:
    """Raises Unreadable."""
    picture = opened(data, name)
    num_pages = num_frames(picture)
    if not 1 <= number <= num_pages:
        raise Unreadable(
            FileState.FAILED, f"{name} has no page {number}: its last one is {num_pages}."
        )
    shown = pixels(picture, number, MOST_PIXELS, name)
    rows = memoryview(shown.tobytes())
    png = png_of(rows, shown.width, shown.height, 3 * shown.width)
    return PagePicture(png=png, width=shown.width, height=shown.height, boxes=())


def _damaged(name: str) -> Unreadable:
    return Unreadable(
        FileState.DAMAGED, f"{name} is a damaged picture: copy it again from where it came from."
    )


def _too_large(name: str, width: int = 0, height: int = 0) -> Unreadable:
    has = f"{width:,} by {height:,}" if width else f"more than {MOST_DECODED:,}"
    return Unreadable(
        FileState.TOO_LARGE,
        f"{name} has {has} pixels, and pictures up to {MOST_DECODED // 1_000_000} million are"
        " read: save a smaller copy of it.",
    )
