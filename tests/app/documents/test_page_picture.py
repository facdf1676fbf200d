"""Pages of PDFs as pictures, drawn by the reading process and believed in nothing."""

import os
import signal
import struct
import sys
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.documents.document import FileState, Unreadable
from app.documents.page_picture import (
    MOST_PIXELS,
    Box,
    PagePicture,
    PictureWish,
    letters_of,
    picture_from,
)
from app.documents.png import check_png, png_of
from app.documents.reading import Limits, Reader
from tests.app.documents.office_files import docx, paragraph
from tests.app.documents.pdf_file import PdfFile, pdf_of, shown
from tests.waiting import until

HARMFUL = (sys.executable, "-m", "tests.app.documents.harmful")


@pytest.fixture
async def reader() -> AsyncIterator[Reader]:
    reader = Reader()
    yield reader
    await reader.close()


@pytest.fixture
async def harmed() -> AsyncIterator[Reader]:
    reader = Reader(HARMFUL, Limits(seconds=1, seconds_a_page=0.5, tick_s=0.02))
    yield reader
    await reader.close()


def rows_of(picture: PagePicture) -> list[bytes]:
    """The pixels, row by row."""
    data, at = b"", 8
    while at < len(picture.png):
        (length,) = struct.unpack(">I", picture.png[at : at + 4])
        if picture.png[at + 4 : at + 8] == b"IDAT":
            data += picture.png[at + 8 : at + 8 + length]
        at += 12 + length
    plain = zlib.decompress(data)
    row = 1 + 3 * picture.width
    return [plain[start + 1 : start + row] for start in range(0, len(plain), row)]


def has_ink(picture: PagePicture, box: Box) -> bool:
    """Whether something dark stands in it."""
    first, last = int(box.left * picture.width), int((box.left + box.width) * picture.width)
    top, bottom = int(box.top * picture.height), int((box.top + box.height) * picture.height)
    return any(min(row[3 * first : 3 * last + 3]) < 100 for row in rows_of(picture)[top:bottom])


async def drawn(
    reader: Reader, path: Path, data: bytes, wish: PictureWish, password: str = ""
) -> PagePicture:
    path.write_bytes(data)
    return await reader.draw(path, wish, password=password)


async def refusal(
    reader: Reader, path: Path, data: bytes, wish: PictureWish, password: str = ""
) -> tuple[FileState, str]:
    with pytest.raises(Unreadable) as caught:
        await drawn(reader, path, data, wish, password)
    return caught.value.state, str(caught.value)


async def test_the_words_that_are_meant_are_boxed(reader: Reader, tmp_path: Path) -> None:
    lines = ["The lease ends in May.", "Nobody may keep", "a dog here.", "The lease ends in May."]
    data = pdf_of([["cover"], lines])
    wish = PictureWish(number=2, words="nobody may keep a dog")
    picture = await drawn(reader, tmp_path / "a.pdf", data, wish)
    assert (picture.width, picture.height) == (1224, 1584)
    assert len(picture.boxes) == 2 and all(has_ink(picture, box) for box in picture.boxes)
    first, second = picture.boxes
    assert first.top < second.top and 0.05 < first.top < 0.2 and first.left < 0.13
    # The same words twice: those are meant that have so many letters before them.
    for num_before, is_lower in ((0, False), (len(letters_of("".join(lines[:3]))), True)):
        wish = PictureWish(number=2, words=lines[0], num_before=num_before)
        (box,) = (await drawn(reader, tmp_path / "a.pdf", data, wish)).boxes
        assert (box.top > second.top) == is_lower


async def test_a_page_without_the_words_comes_without_a_box(reader: Reader, tmp_path: Path) -> None:
    data = pdf_of([["words"], []])
    for wish in (
        PictureWish(number=1, words="nowhere to be seen"),
        PictureWish(number=1),
        PictureWish(number=2, words="words"),
    ):
        picture = await drawn(reader, tmp_path / "a.pdf", data, wish)
        assert picture.boxes == () and picture.png


async def test_words_with_something_unseen_between_them_are_found_line_by_line(
    reader: Reader, tmp_path: Path
) -> None:
    file = PdfFile()
    white = b"1 1 1 rg " + shown("ignore the rest", 72, 706) + b"0 0 0 rg "
    file.page(shown("The lease ends", 72, 720) + white + shown("in May.", 72, 692))
    wish = PictureWish(number=1, words="The lease ends\nin May.")
    picture = await drawn(reader, tmp_path / "a.pdf", file.data(), wish)
    assert len(picture.boxes) >= 2
    assert all(box.width < 0.3 for box in picture.boxes)


@pytest.mark.parametrize("turn", [90, 180, 270])
async def test_boxes_turn_with_their_page(reader: Reader, tmp_path: Path, turn: int) -> None:
    file = PdfFile()
    file.page(
        shown("rent is due", 100, 700) + shown("other words", 300, 300), extra=b"/Rotate %d" % turn
    )
    wish = PictureWish(number=1, words="rent is due")
    picture = await drawn(reader, tmp_path / "a.pdf", file.data(), wish)
    assert (picture.width > picture.height) == (turn in (90, 270))
    (box,) = picture.boxes
    assert (box.height > box.width) == (turn in (90, 270))
    assert has_ink(picture, box)


async def test_a_huge_page_is_drawn_small(reader: Reader, tmp_path: Path) -> None:
    file = PdfFile()
    file.page(shown("rent", 7000, 7000, size=400), extra=b"/MediaBox[0 0 14400 14400]")
    wish = PictureWish(number=1, words="rent")
    picture = await drawn(reader, tmp_path / "a.pdf", file.data(), wish)
    assert picture.width == picture.height == MOST_PIXELS
    (box,) = picture.boxes
    assert has_ink(picture, box)


async def test_a_page_that_is_not_there_is_said(reader: Reader, tmp_path: Path) -> None:
    for number in (0, 3, -1):
        state, sentence = await refusal(
            reader, tmp_path / "a.pdf", pdf_of([["x"], ["y"]]), PictureWish(number=number)
        )
        assert state is FileState.FAILED
        assert sentence == f"a.pdf has no page {number}: its last one is 2."


async def test_a_locked_file_is_drawn_with_its_password_only(
    reader: Reader, tmp_path: Path
) -> None:
    data = pdf_of([["Secret plans"]], password="abc")
    wish = PictureWish(number=1, words="secret plans")
    for password in ("", "wrong"):
        state, sentence = await refusal(reader, tmp_path / "a.pdf", data, wish, password)
        assert "read" not in sentence and "open" in sentence
        assert state is FileState.NEEDS_PASSWORD
    assert (await drawn(reader, tmp_path / "a.pdf", data, wish, "abc")).boxes


async def test_what_is_no_pdf_or_is_gone_is_a_sentence(reader: Reader, tmp_path: Path) -> None:
    wish = PictureWish(number=1)
    state, sentence = await refusal(reader, tmp_path / "a.pdf", docx(paragraph("x")), wish)
    assert state is FileState.UNSUPPORTED and "is now a Word document" in sentence
    state, _ = await refusal(reader, tmp_path / "b.pdf", b"%PDF-1.7 cut off", wish)
    assert state is FileState.DAMAGED
    with pytest.raises(Unreadable):
        await reader.draw(tmp_path / "gone.pdf", wish)


@pytest.mark.parametrize("order", ["crash", "leave", "hang"])
async def test_a_file_that_ends_the_process_leaves_the_next_one_alone(
    harmed: Reader, tmp_path: Path, order: str
) -> None:
    wish = PictureWish(number=1)
    state, _ = await refusal(harmed, tmp_path / "bad.pdf", f"{order} now".encode(), wish)
    assert state is FileState.FAILED
    assert (await drawn(harmed, tmp_path / "good.pdf", pdf_of([["x"]]), wish)).png


async def test_a_process_that_is_killed_is_replaced(reader: Reader, tmp_path: Path) -> None:
    wish = PictureWish(number=1)
    await drawn(reader, tmp_path / "a.pdf", pdf_of([["x"]]), wish)
    assert reader._process is not None
    process = reader._process._process
    os.kill(process.pid, signal.SIGKILL)
    await until(lambda: process.poll() is not None)
    state, sentence = await refusal(reader, tmp_path / "a.pdf", pdf_of([["x"]]), wish)
    assert state is FileState.FAILED and "ended the process that reads files (-9)" in sentence
    assert (await drawn(reader, tmp_path / "a.pdf", pdf_of([["x"]]), wish)).png


async def test_what_is_no_picture_is_not_passed_on(harmed: Reader, tmp_path: Path) -> None:
    wish = PictureWish(number=1)
    state, sentence = await refusal(harmed, tmp_path / "bad.pdf", b"false words", wish)
    assert (state, "makes no sense" in sentence) == (FileState.FAILED, True)


def test_a_picture_is_believed_in_its_form_alone() -> None:
    png = png_of(memoryview(bytes(2 * 8)), 2, 2, 8)
    facts = {"width": 2, "height": 2, "boxes": [[0, 0, 0.5, 1]]}
    assert picture_from(facts, png, "x").boxes == (Box(0, 0, 0.5, 1),)
    check_png(png, 2, 2)
    for wrong in (
        {"width": 3},
        {"width": MOST_PIXELS + 1},
        {"width": float("inf")},
        {"boxes": [[0, 0, 2, 1]]},
        {"boxes": [[0, 0, float("nan"), 1]]},
        {"boxes": [[0, 0, 1]]},
        {"boxes": [["x", 0, 1, 1]]},
    ):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            picture_from({**facts, **wrong}, png, "x")
    with pytest.raises(ValueError):
        picture_from(facts, png[:-1], "x")
