"""The process that reads pictures: it is given files as the reading process is, and numbers of
pages, and says what is written on those.

    in   one line of JSON: {"name", "password", "size", "numbers"}, then the bytes of the file
    out  {"pages": [page]} for each number in turn; without the flag `ocr`: it could not be read;
         then {"end": facts}, or {"unreadable": [state, sentence]}

It is one of its own since its models take hundreds of megabytes and seconds to load, and since a
picture that breaks it must cost one page only.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Sequence

import numpy as np

from app.documents.child import MOST_SECONDS, answer, load_encodings, shut_in
from app.documents.document import Facts, Page, PageFlag
from app.documents.layout import text_of
from app.documents.ocr import LONGEST_SIDE, Engine, EngineFailed, Pixels
from app.documents.parsers.page_pixels import pixels_of
from app.documents.parsers.pdf import is_garbled
from app.door import allow_seconds

MOST_BYTES = 4_000_000_000
"""Of addresses; how much of it is used is watched from outside."""


def main() -> int:
    # Whoever chats meanwhile comes first.
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    # Each thread of a library for matrices would reserve addresses, and none is of use here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # All that is needed later is imported and loaded before the door is shut.
    from app.documents.rapid import RapidEngine

    load_encodings()
    return serve(RapidEngine())


def serve(engine: Engine) -> int:
    """Read pictures until there are no more."""
    orders, answers = shut_in(MOST_BYTES)
    while line := orders.readline():
        order = json.loads(line)
        data = orders.read(order["size"])
        allow_seconds(MOST_SECONDS * max(1, len(order["numbers"])))
        pictures = pixels_of(data, order["name"], order["password"], order["numbers"], LONGEST_SIDE)
        answer(_pages(engine, order["numbers"], pictures), answers, is_prompt=True)
        del data, pictures
    return 0


def _pages(
    engine: Engine, numbers: Sequence[int], pictures: Iterator[Pixels | None]
) -> Iterator[Page | Facts]:
    for number, pixels in zip(numbers, pictures, strict=True):
        yield page_of(engine, number, pixels)
    yield Facts(kind="", num_pages=len(numbers))


def page_of(engine: Engine, number: int, pixels: Pixels | None) -> Page:
    """`pixels` is None for a page that cannot be drawn."""
    failed = Page(number=number, label="", text="")
    if pixels is None:
        return failed
    flags = frozenset({PageFlag.OCR})
    height, width = pixels.shape[:2]
    if is_plain(pixels):
        return Page(number=number, label="", text="", flags=flags)
    try:
        sight = engine.look(pixels)
    except EngineFailed:
        return failed
    text, pieces = text_of(sight, width, height)
    if is_garbled(text):
        return Page(number=number, label="", text="", flags=flags)
    return Page(number=number, label="", text=text, flags=flags, pieces=pieces)


def is_plain(pixels: Pixels) -> bool:
    """Whether it is all of one colour, as an empty page is."""
    return bool(np.all(pixels.max(axis=(0, 1)) - pixels.min(axis=(0, 1)) < 8))
