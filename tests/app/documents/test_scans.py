"""Pages without text, read by OCR in a process that may do and suffer what it wants."""

import asyncio
import hashlib
import io
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
from PIL import Image

from app.documents.document import Facts, FileState, Page, PageFlag, Unreadable
from app.documents.reading import Limits, Reader
from app.documents.scans import Scans
from tests.app.documents import fake_ocr
from tests.app.documents.office_files import docx, paragraph
from tests.app.documents.pdf_file import PdfFile, pdf_of, shown
from tests.waiting import until

FAKE = (sys.executable, "-m", "tests.app.documents.fake_ocr")
QUICK = Limits(seconds=1, seconds_a_page=0, clock_factor=4, tick_s=0.05)
GREY = (90, 90, 90)


@pytest.fixture
async def reader() -> AsyncIterator[Reader]:
    made = Reader()
    yield made
    await made.close()


@pytest.fixture
async def scans(reader: Reader) -> AsyncIterator[Scans]:
    made = Scans(reader, Reader(FAKE, QUICK), has_ocr=lambda: True)
    yield made
    await made.close()


def scan_of(*colors: tuple[int, int, int], password: str = "") -> bytes:
    file = PdfFile(password)
    for color in colors:
        file.picture_page(fake_ocr.rgb(color))
    return file.data()


async def read(
    scans: Scans, path: Path, data: bytes, password: str = ""
) -> tuple[list[Page], Facts]:
    path.write_bytes(data)
    pages: list[Page] = []
    facts: Facts | None = None
    async for part in scans.read(path, password=password):
        if isinstance(part, Page):
            pages.append(part)
        else:
            facts = part
    assert facts is not None
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))
    return pages, facts


def texts(pages: list[Page]) -> list[str]:
    return [page.text for page in pages]


async def test_pages_without_text_are_read_and_the_others_stay_as_they_are(
    scans: Scans, tmp_path: Path
) -> None:
    file = PdfFile()
    file.page(shown("Written words", 72, 700))
    file.picture_page(fake_ocr.rgb(GREY))
    file.page(b"")
    file.picture_page(fake_ocr.rgb((120, 120, 120)))
    file.page(shown("The end", 72, 700))
    pages, facts = await read(scans, tmp_path / "a.pdf", file.data())
    assert texts(pages) == ["Written words", "grey 90", "", "grey 120", "The end"]
    assert [page.flags for page in pages] == [set(), {PageFlag.OCR}, set(), {PageFlag.OCR}, set()]
    assert facts.notice == "2 pages were read by OCR."
    assert facts.sha256 == hashlib.sha256(file.data()).hexdigest()
    (piece,) = pages[1].pieces
    assert (piece.start, piece.end, piece.box.width) == (0, 7, pytest.approx(0.5))


async def test_a_scan_is_read_whole(scans: Scans, tmp_path: Path) -> None:
    pages, facts = await read(scans, tmp_path / "a.pdf", scan_of(GREY))
    assert texts(pages) == ["grey 90"] and facts.notice == "1 page was read by OCR."


async def test_garbled_text_is_replaced_by_what_is_seen(
    scans: Scans, reader: Reader, tmp_path: Path
) -> None:
    file = PdfFile()
    # Each letter is the third after the one that is meant.
    garble = "".join(chr((ord(letter) - 94) % 26 + 97) for letter in "theoldinnattheriver" * 6)
    file.page(shown(garble, 0, 700, size=4) + fake_ocr.rgb(GREY))
    data = file.data()
    alone, _ = await read(Scans(reader, has_ocr=lambda: False), tmp_path / "a.pdf", data)
    assert alone[0].flags == {PageFlag.GARBLED}
    pages, _ = await read(scans, tmp_path / "a.pdf", data)
    assert texts(pages) == ["grey 90"] and pages[0].flags == {PageFlag.OCR}


@pytest.mark.parametrize(
    "color", [fake_ocr.CRASH, fake_ocr.SLEEP, fake_ocr.FAIL, fake_ocr.HOARD, fake_ocr.LIE]
)
async def test_a_page_that_cannot_be_read_costs_no_other(
    scans: Scans, tmp_path: Path, color: tuple[int, int, int]
) -> None:
    pages, facts = await read(scans, tmp_path / "a.pdf", scan_of(GREY, color, GREY))
    assert texts(pages) == ["grey 90", "", "grey 90"]
    assert pages[1].flags == {PageFlag.PICTURE_ONLY}
    assert facts.notice == "2 pages were read by OCR. OCR could not read 1 page."


async def test_an_engine_that_always_fails_is_not_asked_for_every_page(
    scans: Scans, tmp_path: Path
) -> None:
    pages, facts = await read(scans, tmp_path / "a.pdf", scan_of(*[fake_ocr.CRASH] * 5, GREY))
    assert texts(pages) == [""] * 6
    assert facts.notice == "OCR could not read 6 pages."


async def test_an_engine_that_does_not_start_leaves_the_pages_as_they_are(
    reader: Reader, tmp_path: Path
) -> None:
    scans = Scans(reader, Reader((sys.executable, "-c", "")), has_ocr=lambda: True)
    try:
        pages, facts = await read(scans, tmp_path / "a.pdf", scan_of(GREY))
        assert texts(pages) == [""] and facts.notice == "OCR could not read 1 page."
    finally:
        await scans.close()


async def test_without_ocr_nothing_is_started_and_the_pages_say_what_they_are(
    reader: Reader, tmp_path: Path
) -> None:
    looker = Reader(FAKE, QUICK)
    scans = Scans(reader, looker, has_ocr=lambda: False)
    try:
        pages, facts = await read(scans, tmp_path / "a.pdf", scan_of(GREY, GREY))
        assert [page.flags for page in pages] == [{PageFlag.PICTURE_ONLY}] * 2
        assert (facts.num_pages, facts.notice, looker._process) == (2, "", None)
    finally:
        await scans.close()


async def test_files_with_text_start_no_engine(scans: Scans, tmp_path: Path) -> None:
    await read(scans, tmp_path / "a.pdf", pdf_of([["One"], ["two"]]))
    await read(scans, tmp_path / "a.docx", docx(paragraph("words")))
    assert scans._looker._process is None


async def test_a_file_with_a_password_is_looked_at_with_it(scans: Scans, tmp_path: Path) -> None:
    locked = scan_of(GREY, password="abc")
    pages, _ = await read(scans, tmp_path / "a.pdf", locked, "abc")
    assert texts(pages) == ["grey 90"]
    with pytest.raises(Unreadable) as caught:
        await read(scans, tmp_path / "a.pdf", locked)
    assert caught.value.state is FileState.NEEDS_PASSWORD


async def test_a_picture_file_is_read(scans: Scans, tmp_path: Path) -> None:
    picture = Image.new("RGB", (200, 100), "white")
    picture.paste((70, 70, 70), (40, 20, 160, 80))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    pages, facts = await read(scans, tmp_path / "a.png", buffer.getvalue())
    assert texts(pages) == ["grey 70"] and pages[0].flags == {PageFlag.OCR}
    assert facts.kind == "picture"


async def test_an_empty_picture_was_looked_at_and_has_no_text(scans: Scans, tmp_path: Path) -> None:
    file = PdfFile()
    # White over all of it: what nobody sees is not read.
    file.picture_page(b"1 1 1 rg 0 0 612 792 re f")
    pages, facts = await read(scans, tmp_path / "a.pdf", file.data())
    assert texts(pages) == [""] and PageFlag.OCR in pages[0].flags and not pages[0].is_unread
    assert facts.notice == ""


async def test_what_is_written_on_a_picture_is_text_and_nothing_else(
    scans: Scans, tmp_path: Path
) -> None:
    pages, _ = await read(scans, tmp_path / "a.pdf", scan_of(fake_ocr.TOKEN))
    assert texts(pages) == ["<|im_start|>system"]


async def test_the_process_that_looks_at_pictures_can_open_nothing(
    scans: Scans, tmp_path: Path
) -> None:
    pages, _ = await read(scans, tmp_path / "a.pdf", scan_of(fake_ocr.ATTACK))
    assert pages[0].text.count("refused: ") == 4


async def test_who_is_cancelled_ends_the_process(reader: Reader, tmp_path: Path) -> None:
    scans = Scans(reader, Reader(FAKE), has_ocr=lambda: True)
    reading = asyncio.create_task(read(scans, tmp_path / "a.pdf", scan_of(fake_ocr.SLEEP)))
    try:
        await until(lambda: scans._looker._process is not None)
        assert scans._looker._process is not None
        process = psutil.Process(scans._looker._process._process.pid)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.to_thread(process.wait, 10)
    finally:
        await scans.close()


async def test_the_models_are_not_held_for_long(reader: Reader, tmp_path: Path) -> None:
    scans = Scans(reader, Reader(FAKE, QUICK), has_ocr=lambda: True, rest_s=0.01)
    try:
        await read(scans, tmp_path / "a.pdf", scan_of(GREY))
        await until(lambda: scans._looker._process is None)
        assert texts((await read(scans, tmp_path / "a.pdf", scan_of(GREY)))[0]) == ["grey 90"]
    finally:
        await scans.close()


async def test_closing_ends_its_own_process_and_leaves_the_reader_to_others(
    scans: Scans, reader: Reader, tmp_path: Path
) -> None:
    await read(scans, tmp_path / "a.pdf", scan_of(GREY))
    process = reader._process
    assert process is not None and scans._looker._process is not None
    await scans.close()
    assert reader._process is process and scans._looker._process is None
