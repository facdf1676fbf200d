"""Pages of a PDF or of a picture file as plain pixels, for what reads pictures."""

from collections.abc import Iterator, Sequence

import numpy as np
import pypdfium2

from app.documents.document import FileState, Unreadable
from app.documents.kinds import NAMES, Kind
from app.documents.ocr import Pixels
from app.documents.parsers import picture
from app.documents.parsers.pdf import opened
from app.documents.parsers.source import Source
from app.documents.sniff import sniff


def pixels_of(
    data: bytes, name: str, password: str, numbers: Sequence[int], longest: int
) -> Iterator[Pixels | None]:
    """Of the pages with these numbers, upright, no side longer than `longest`. None: it is damaged.
    Raises Unreadable."""
    kind, encoding, _ = sniff(data, name)
    if kind is Kind.PICTURE:
        yield from _of_frames(data, name, numbers, longest)
    elif kind is Kind.PDF:
        source = Source(data=data, name=name, kind=kind, encoding=encoding, password=password)
        yield from _of_pages(source, numbers, longest)
    else:
        raise Unreadable(
            FileState.UNSUPPORTED, f"{name} is now a {NAMES[kind]}, which has no pictures of pages."
        )


def _of_frames(
    data: bytes, name: str, numbers: Sequence[int], longest: int
) -> Iterator[Pixels | None]:
    for number in numbers:
        try:
            # Anew for each: one that was made smaller, or is damaged, may not be gone on with.
            shown = picture.pixels(picture.opened(data, name), number, longest, name)
        except Unreadable:
            yield None
            continue
        yield np.asarray(shown)


def _of_pages(source: Source, numbers: Sequence[int], longest: int) -> Iterator[Pixels | None]:
    document = opened(source)
    try:
        document.init_forms()
        for number in numbers:
            yield _of_page(document, number, longest)
    finally:
        document.close()


def _of_page(document: pypdfium2.PdfDocument, number: int, longest: int) -> Pixels | None:
    try:
        page = document[number - 1]
        try:
            scale = (longest - 0.5) / max(page.get_size())
            bitmap = page.render(scale=scale, rev_byteorder=True)
            try:
                return np.array(bitmap.to_numpy()[:, :, :3])
            finally:
                bitmap.close()
        finally:
            page.close()
    except (pypdfium2.PdfiumError, ValueError, ArithmeticError, LookupError):
        return None
