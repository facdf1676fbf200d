"""Where on its picture the text of a page stands that OCR has read: kept, and found again for the
words that are meant."""

import json
from collections.abc import Sequence

from app.documents.document import Piece
from app.documents.page_picture import MOST_BOXES, Box, places_of

SHARES = 10_000
"""A side of the picture in the numbers that are kept."""
MARGIN = 0.003
"""Around the letters, as a share of the picture."""


def stored_pieces(pieces: Sequence[Piece]) -> str:
    """As the table has them; empty for none."""
    if not pieces:
        return ""
    rows = [
        [
            piece.start,
            piece.end,
            int(piece.is_level),
            *(round(SHARES * side) for side in places_of(piece.box)),
        ]
        for piece in pieces
    ]
    return json.dumps(rows, separators=(",", ":"))


def pieces_from(stored: str) -> tuple[Piece, ...]:
    """Those that `stored_pieces` has written."""
    if not stored:
        return ()
    return tuple(
        Piece(
            start=start,
            end=end,
            box=Box(*(side / SHARES for side in sides)),
            is_level=bool(is_level),
        )
        for start, end, is_level, *sides in json.loads(stored)
    )


def boxes_of(pieces: Sequence[Piece], start: int, end: int) -> tuple[Box, ...]:
    """Around the words from `start` to `end`; of a level line its part alone."""
    found = []
    for piece in pieces:
        first, last = max(start, piece.start), min(end, piece.end)
        if first < last:
            found.append(_with_margin(_part(piece, first, last)))
    return tuple(found[:MOST_BOXES])


def _part(piece: Piece, first: int, last: int) -> Box:
    """The letters of a line are about as wide as each other."""
    box = piece.box
    if not piece.is_level:
        return box
    letter = box.width / (piece.end - piece.start)
    left = box.left + letter * (first - piece.start)
    return Box(left, box.top, letter * (last - first), box.height)


def _with_margin(box: Box) -> Box:
    left, top = max(box.left - MARGIN, 0.0), max(box.top - MARGIN, 0.0)
    right = min(box.left + box.width + MARGIN, 1.0)
    bottom = min(box.top + box.height + MARGIN, 1.0)
    return Box(left, top, right - left, bottom - top)
