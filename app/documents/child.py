"""The reading process: people's files come in one after the other, their pages go out.

    out  {"ready": true}, when the door is shut
    in   for each file one line of JSON: {"name", "password", "size"}, then its bytes
    out  lines of JSON: {"facts"} and {"pages"} as they are found, then {"end": facts} or
         {"unreadable": [state, sentence]}

    in   the same with {"picture": {"number", "words", "num_before"}}: a page is to be drawn
    out  {"picture": {"width", "height", "boxes", "size"}}, then a PNG of so many bytes; or
         {"unreadable": [state, sentence]}

A file may be made to harm whoever reads it. So this process gets bytes and no path, has little
memory and time, and from before its first file on it can open no other file and no connection.
"""

import codecs
import encodings
import json
import os
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import BinaryIO

from app.documents.document import Facts, Page, Unreadable
from app.documents.page_picture import PagePicture, PictureWish, places_of
from app.door import allow_seconds, shut

MOST_BYTES = 2_000_000_000
OUT_OF_MEMORY = 77
"""The exit code when it needed more."""
MOST_SECONDS = 1_800
"""Of the processor, for one file."""
BATCH_CHARACTERS = 60_000
BATCH_PAGES = 50
BATCH_SECONDS = 0.2
"""Pages go out together: a long document has thousands, and whoever waits has other work."""

Parse = Callable[[bytes, str, str], Iterator[Page | Facts]]
Draw = Callable[[bytes, str, str, PictureWish], PagePicture]


def main() -> int:
    # All that is needed later is imported before the door is shut.
    from app.documents.parsers.parsing import parse
    from app.documents.parsers.pdf_picture import draw

    load_encodings()
    return serve(parse, draw)


def serve(parse: Parse, draw: Draw) -> int:
    """Read files until there are no more."""
    orders, answers = shut_in(MOST_BYTES)
    while line := orders.readline():
        order = json.loads(line)
        data = orders.read(order["size"])
        name, password, wanted = order["name"], order["password"], order.get("picture")
        allow_seconds(MOST_SECONDS)
        if wanted is None:
            answer(parse(data, name, password), answers)
        else:
            drawing = partial(draw, data, name, password, PictureWish(**wanted))
            answer_picture(drawing, answers)
            del drawing
        del data
    return 0


def own_answers() -> BinaryIO:
    """Where answers go out: whatever a library prints must not get between the lines."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
    return answers


def shut_in(most_bytes: int) -> tuple[BinaryIO, BinaryIO]:
    """Shut the door, and say so; where orders come in and answers go out from now on."""
    answers = own_answers()
    shut(most_bytes)
    say(answers, {"ready": True})
    return sys.stdin.buffer, answers


def answer_picture(drawing: Callable[[], PagePicture], answers: BinaryIO) -> None:
    """Say what a page looks like."""
    try:
        picture = drawing()
    except Unreadable as problem:
        say(answers, {"unreadable": [problem.state.value, str(problem)]})
        return
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    boxes = [places_of(box) for box in picture.boxes]
    facts = {
        "width": picture.width,
        "height": picture.height,
        "boxes": boxes,
        "size": len(picture.png),
    }
    say(answers, {"picture": facts}, picture.png)


def answer(parts: Iterator[Page | Facts], answers: BinaryIO, *, is_prompt: bool = False) -> None:
    """Say all that is found of one file; `is_prompt`: each page at once."""
    batch = _Batch(answers)
    facts: Facts | None = None
    try:
        for part in parts:
            if isinstance(part, Page):
                batch.add(part)
                if is_prompt:
                    batch.flush()
                continue
            facts = part
            if not batch.has_said:
                batch.say({"facts": asdict(part)})
        batch.flush()
        batch.say({"end": asdict(facts) if facts else {}})
    except Unreadable as problem:
        batch.flush()
        batch.say({"unreadable": [problem.state.value, str(problem)]})
    except MemoryError:
        # There is no room to say so in words.
        os._exit(OUT_OF_MEMORY)


class _Batch:
    """Pages on their way out. Owned by `answer`."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._pages: list[dict[str, object]] = []
        self._length = 0
        self._since = time.monotonic()
        self.has_said = False

    def add(self, page: Page) -> None:
        self._pages.append(
            {
                "number": page.number,
                "label": page.label,
                "text": page.text,
                "headings": [[heading.start, *heading.path] for heading in page.headings],
                "flags": sorted(page.flags),
                "pieces": [
                    [piece.start, piece.end, piece.is_level, *places_of(piece.box)]
                    for piece in page.pieces
                ],
            }
        )
        self._length += len(page.text)
        if (
            self._length > BATCH_CHARACTERS
            or len(self._pages) >= BATCH_PAGES
            or time.monotonic() - self._since > BATCH_SECONDS
        ):
            self.flush()

    def flush(self) -> None:
        if self._pages:
            self.say({"pages": self._pages})
            self._pages, self._length = [], 0
        self._since = time.monotonic()

    def say(self, line: dict[str, object]) -> None:
        self.has_said = True
        say(self._answers, line)


def say(answers: BinaryIO, line: dict[str, object], after: bytes = b"") -> None:
    answers.write(json.dumps(line).encode() + b"\n" + after)
    answers.flush()


def load_encodings() -> None:
    """All of them: Python looks for one in a file when a text first asks for it."""
    for module in pkgutil.iter_modules(encodings.__path__):
        try:
            codecs.lookup(module.name)
        except (LookupError, ImportError):
            # Some are helpers, or belong to another system.
            continue
