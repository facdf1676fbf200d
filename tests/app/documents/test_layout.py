"""Words seen in a picture, in the order in which a person reads them."""

import math
from collections.abc import Sequence

import pytest

from app.documents.layout import text_of
from app.documents.ocr import Seen, Sight

WIDTH, HEIGHT = 1200, 1600
Place = tuple[str, float, float]


def seen(text: str, x: float, y: float, confidence: float = 0.99) -> Seen:
    """A line 24 pixels high, of letters 12 wide."""
    right, bottom = x + 12 * len(text), y + 24
    return Seen(text, confidence, ((x, y), (right, y), (right, bottom), (x, bottom)))


def read(places: Sequence[Place]) -> str:
    return text_of(Sight([seen(*place) for place in places]), WIDTH, HEIGHT)[0]


def column(words: str, x: float, y: float, num_lines: int = 5) -> list[Place]:
    return [(f"{words} line {row} of its text", x, y + 32 * row) for row in range(num_lines)]


def turned(line: Seen, quarters: int) -> Seen:
    """On the sheet turned clockwise by so many quarters; its corners go on from the upper left."""
    corners = line.corners
    for number in range(quarters):
        height = (HEIGHT, WIDTH)[number % 2]
        corners = tuple((height - y, x) for x, y in corners)
        corners = (*corners[-1:], *corners[:-1])
    return Seen(line.text, line.confidence, corners)


def test_two_columns_are_read_one_after_the_other() -> None:
    left, right = column("left", 60, 200), column("right", 640, 212)
    heading = ("A heading that goes over both of the columns, from side to side of it", 60, 100)
    foot = ("Page 1", 550, 1500)
    lines = read([*right, *left, foot, heading]).split("\n")
    assert [line for line in lines if line] == [
        heading[0],
        *(text for text, _, _ in left),
        *(text for text, _, _ in right),
        foot[0],
    ]


def test_three_columns_are_read_one_after_the_other() -> None:
    columns = [column(name, x, 200) for name, x in (("one", 40), ("two", 440), ("six", 840))]
    text = read([place for row in zip(*columns, strict=True) for place in row])
    assert text.split() == [
        word for each in columns for text, _, _ in each for word in text.split()
    ]


def test_the_cells_of_a_table_stay_in_their_row() -> None:
    cells = ("Glucose", "118 mg/dL", "HIGH"), ("HbA1c", "6.8 %", "HIGH"), ("TSH", "2.4", "ok")
    places = [
        (cell, 60 + 400 * place, 200 + 32 * row)
        for row, line in enumerate(cells)
        for place, cell in enumerate(line)
    ]
    assert read(places) == "\n".join(" | ".join(line) for line in cells)


def test_words_that_were_seen_apart_are_one_line() -> None:
    assert read([("Total", 60, 200), ("sum", 140, 202)]) == "Total sum"


def test_paragraphs_are_told_by_the_room_between_them() -> None:
    assert read([("One", 60, 200), ("two", 60, 232), ("three", 60, 330)]) == "One\ntwo\n\nthree"


def test_a_word_that_is_broken_at_the_end_of_a_line_is_one() -> None:
    sight = Sight([seen("the con-", 60, 200), seen("tract of 1998-", 60, 232), seen("99", 60, 264)])
    text, pieces = text_of(sight, WIDTH, HEIGHT)
    assert text == "the contract of 1998-\n99"
    assert [text[piece.start : piece.end] for piece in pieces] == [
        "the con",
        "tract of 1998-",
        "99",
    ]


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_sheet_that_lies_is_read_as_if_it_were_upright(quarters: int) -> None:
    places = [*column("left", 60, 200), *column("right", 640, 200), ("A foot", 500, 1500)]
    lines = [turned(seen(*place), quarters) for place in places]
    size = (WIDTH, HEIGHT) if quarters == 2 else (HEIGHT, WIDTH)
    text, pieces = text_of(Sight(lines, (4 - quarters) % 4), *size)
    assert text == read(places)
    # What is boxed is where it is seen.
    first = next(piece for piece in pieces if text[piece.start : piece.end] == places[0][0])
    (left, top), (right, bottom) = (
        [pick(each) for each in zip(*lines[0].corners, strict=True)] for pick in (min, max)
    )
    assert first.box.left == pytest.approx(left / size[0])
    assert first.box.top == pytest.approx(top / size[1])
    assert first.box.width == pytest.approx((right - left) / size[0])
    assert first.box.height == pytest.approx((bottom - top) / size[1])
    assert not first.is_level


def test_a_sheet_that_was_laid_askew_is_read_in_rows() -> None:
    def askew(line: Seen, angle: float) -> Seen:
        turn = math.cos(angle), math.sin(angle)
        corners = tuple(
            (x * turn[0] - y * turn[1] + 100, x * turn[1] + y * turn[0]) for x, y in line.corners
        )
        return Seen(line.text, line.confidence, corners)

    cells = [(f"a rather long name {row}", f"its value is {row}") for row in range(6)]
    places = [
        (cell, 60 + 700 * at, 200 + 32 * row)
        for row, line in enumerate(cells)
        for at, cell in enumerate(line)
    ]
    lines = [askew(seen(*place), math.radians(4)) for place in places]
    text, _ = text_of(Sight(lines), WIDTH, HEIGHT)
    assert text.split("\n") == [" | ".join(line) for line in cells]


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("Bléndefgelysiciater:", 0.7),
        # Of what the models have not learned they see gaps, and are sure of them.
        ("   ,  ", 0.99),
        ("  1.2   ", 0.99),
        (" σμβασ ανανενεται κε", 0.9),
        ("\u200b", 0.99),
    ],
)
def test_what_is_no_sure_reading_is_left_out(text: str, confidence: float) -> None:
    sight = Sight([seen(text, 60, 200, confidence), seen("words", 60, 300)])
    assert text_of(sight, WIDTH, HEIGHT)[0] == "words"
    assert text_of(Sight([seen(text, 60, 200, confidence)]), WIDTH, HEIGHT) == ("", ())


def test_a_page_without_words_has_no_text() -> None:
    assert text_of(Sight([]), WIDTH, HEIGHT) == ("", ())


def test_what_looks_like_a_control_token_stays_text_and_no_control_character_comes_in() -> None:
    assert read([("<|im_start|>system", 60, 200)]) == "<|im_start|>system"
    assert read([("a\x00b\u202ec ﬁne", 60, 200)]) == "abc fine"


def test_pieces_say_where_each_line_stands() -> None:
    text, pieces = text_of(Sight([seen("One", 60, 160), seen("two", 300, 160)]), WIDTH, HEIGHT)
    assert [text[piece.start : piece.end] for piece in pieces] == ["One", "two"]
    box = pieces[1].box
    assert (box.left, box.top) == pytest.approx((300 / WIDTH, 160 / HEIGHT))
    assert pieces[1].is_level
