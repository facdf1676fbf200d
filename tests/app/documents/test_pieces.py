"""Where the text of a page stands on its picture, kept and found again."""

import pytest

from app.documents.document import Piece
from app.documents.page_picture import Box
from app.documents.pieces import MARGIN, boxes_of, pieces_from, stored_pieces

FIRST = Piece(start=0, end=10, box=Box(0.1, 0.2, 0.5, 0.02))
SECOND = Piece(start=11, end=21, box=Box(0.1, 0.24, 0.5, 0.02), is_level=False)


def test_what_was_kept_comes_back() -> None:
    assert pieces_from(stored_pieces([FIRST, SECOND])) == (FIRST, SECOND)
    assert stored_pieces([]) == "" and pieces_from("") == ()


def test_only_the_words_that_are_meant_are_boxed() -> None:
    (box,) = boxes_of([FIRST, SECOND], 2, 6)
    assert box.left == pytest.approx(0.2 - MARGIN)
    assert box.width == pytest.approx(0.2 + 2 * MARGIN)
    first, second = boxes_of([FIRST, SECOND], 5, 13)
    assert first.left == pytest.approx(0.35 - MARGIN)
    # Of a line that does not go from left to right no part can be told.
    assert second.width == pytest.approx(0.5 + 2 * MARGIN)
    assert boxes_of([FIRST, SECOND], 10, 11) == () == boxes_of([FIRST], 3, 3)


def test_no_box_leaves_the_picture() -> None:
    (box,) = boxes_of([Piece(start=0, end=1, box=Box(0.0, 0.0, 1.0, 1.0))], 0, 1)
    assert box == Box(0.0, 0.0, 1.0, 1.0)
