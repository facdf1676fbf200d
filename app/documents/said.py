"""What the reading process says, which is believed in nothing but its form."""

from collections.abc import Iterator
from typing import Any

from app.documents.document import Facts, FileState, Heading, Page, PageFlag, Piece, Unreadable
from app.documents.page_picture import Box, check_box


def makes_no_sense(name: str) -> Unreadable:
    return Unreadable(
        FileState.FAILED, f"{name} made the process that reads files say what makes no sense."
    )


def understood(said: dict[str, Any], name: str) -> Iterator[Page | Facts | Unreadable]:
    """The parts of one line of it, which may be the reason why there are none."""
    try:
        if "pages" in said:
            yield from map(_page, said["pages"])
        elif "unreadable" in said:
            state, sentence = said["unreadable"]
            yield Unreadable(FileState(state), str(sentence))
        else:
            facts = said["end"] if "end" in said else said["facts"]
            yield Facts(
                kind=str(facts["kind"]),
                num_pages=int(facts["num_pages"]),
                title=str(facts["title"]),
                notice=str(facts["notice"]),
            )
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise makes_no_sense(name) from error


def _page(given: dict[str, Any]) -> Page:
    return Page(
        number=int(given["number"]),
        label=str(given["label"]),
        text=str(given["text"]),
        headings=tuple(
            Heading(start=int(start), path=tuple(map(str, path)))
            for start, *path in given["headings"]
        ),
        flags=frozenset(map(PageFlag, given["flags"])),
        pieces=tuple(_piece(*each) for each in given.get("pieces", ())),
    )


def _piece(start: int, end: int, is_level: bool, *sides: float) -> Piece:
    box = check_box(Box(*map(float, sides)))
    return Piece(start=int(start), end=int(end), box=box, is_level=bool(is_level))
