"""Pages for OCR in the library: kept as they are without it, read later, and shown with their
words boxed."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.documents import ocr, rows
from app.documents.document import FileState
from app.documents.library import Library
from app.documents.overview import cost_of, cost_of_unread, status_of, unread_by_root
from app.documents.pace import USUAL_OCR_S, note_pace, ocr_seconds_a_page, pace
from app.documents.page_view import Stretch
from app.documents.reading import Limits, Reader
from app.documents.rows import LibraryFile
from app.documents.scans import Scans
from tests.app.documents import fake_ocr
from tests.app.documents.pdf_file import PdfFile, pdf_of, shown
from tests.waiting import until

FAKE = (sys.executable, "-m", "tests.app.documents.fake_ocr")


class Switch:
    """Whether there is OCR, as when it is installed while the app is used."""

    def __init__(self) -> None:
        self.is_on = False

    def __call__(self) -> bool:
        return self.is_on


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Switch:
    made = Switch()
    monkeypatch.setattr(ocr, "is_installed", made)
    return made


@pytest.fixture
async def library(room: Path, switch: Switch) -> AsyncIterator[Library]:
    reader = Reader()
    scans = Scans(reader, Reader(FAKE, Limits(seconds=20)), has_ocr=switch)
    library = Library(room / "documents.sqlite3", reader, scans=scans)
    await library.prepare()
    yield library
    await library.close()


def mixed() -> bytes:
    file = PdfFile()
    file.page(shown("Written words", 72, 700))
    file.picture_page(fake_ocr.rgb((90, 90, 90)))
    return file.data()


def scanned(*greys: int) -> bytes:
    file = PdfFile()
    for grey in greys:
        file.picture_page(fake_ocr.rgb((grey, grey, grey)))
    return file.data()


async def added(library: Library, folder: Path) -> dict[str, LibraryFile]:
    await library.add(folder)
    return await files(library)


async def files(library: Library) -> dict[str, LibraryFile]:
    await library.settled()
    found = await library.ask(status_of)
    return {Path(file.path).name: file for file in found.files}


async def test_without_ocr_a_file_says_what_it_lacks_and_what_helps(
    library: Library, folder: Path
) -> None:
    (folder / "mixed.pdf").write_bytes(mixed())
    (folder / "scan.pdf").write_bytes(scanned(60, 70))
    found = await added(library, folder)
    remedy = '`pip install "inglenook[ocr]"` adds OCR, which can read them.'
    assert found["scan.pdf"].state is FileState.NO_TEXT
    assert found["scan.pdf"].message.startswith("2 of 2 pages are pictures without text.")
    assert found["mixed.pdf"].state is FileState.INDEXED
    assert found["mixed.pdf"].message.startswith("1 of 2 pages is a picture without text.")
    assert all(file.message.endswith(remedy) for file in found.values())
    assert (found["scan.pdf"].num_pages, found["scan.pdf"].num_unread) == (2, 2)
    page = await library.page(_document(found["scan.pdf"]), 1)
    assert page.can_be_drawn and page.text == ""


def _document(file: LibraryFile) -> int:
    assert file.document_id is not None
    return file.document_id


async def test_where_nothing_can_be_installed_another_way_is_named(
    switch: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert "let your scanner's program write PDFs with text" in ocr.remedy()
    switch.is_on = True
    assert "OCR can read them" in rows.remedy()


async def test_installed_later_it_reads_what_lacks_text_and_nothing_else(
    library: Library, folder: Path, switch: Switch
) -> None:
    (folder / "mixed.pdf").write_bytes(mixed())
    (folder / "scan.pdf").write_bytes(scanned(60, 70))
    (folder / "whole.pdf").write_bytes(pdf_of([["Only written words"]]))
    before = await added(library, folder)
    (num_unread,) = (await library.ask(unread_by_root)).values()
    assert num_unread == 3
    cost = await library.ask(lambda tables: cost_of_unread(tables, str(folder)))
    assert (cost.num_files, cost.num_pages, cost.seconds) == (2, 3, 3 * USUAL_OCR_S)

    switch.is_on = True
    # Nothing begins by itself.
    await library.look()
    assert (await files(library))["scan.pdf"].state is FileState.NO_TEXT
    await library.read_pictures(folder)
    waiting = {Path(file.path).name for file in (await library.ask(status_of)).files
               if file.state is FileState.WAITING}  # fmt: skip
    assert "whole.pdf" not in waiting
    after = await files(library)
    assert {file.state for file in after.values()} == {FileState.INDEXED}
    assert after["scan.pdf"].message == "2 pages were read by OCR."
    assert (after["scan.pdf"].num_ocr, after["scan.pdf"].num_unread) == (2, 0)
    assert after["mixed.pdf"].message == "1 page was read by OCR."
    assert after["whole.pdf"] == before["whole.pdf"]
    hits = (await library.find("grey 70")).hits
    assert (Path(hits[0].paths[0]).name, hits[0].page) == ("scan.pdf", 2)
    cost = await library.ask(lambda tables: cost_of_unread(tables, str(folder)))
    assert (cost.num_files, cost.num_pages) == (0, 0)
    assert await library.ask(unread_by_root) == {}
    # Reading all again costs OCR once more, at the pace that was measured.
    cost = await library.ask(lambda tables: cost_of(tables, str(folder), has_ocr=True))
    assert (cost.num_pages, cost.num_ocr) == (5, 3)


async def test_ocr_comes_last_and_what_is_written_is_found_meanwhile(
    library: Library, folder: Path, switch: Switch
) -> None:
    switch.is_on = True
    (folder / "a.pdf").write_bytes(mixed())
    (folder / "b.pdf").write_bytes(scanned(60, 70, 80))
    for number in range(5):
        (folder / f"c{number}.txt").write_text(f"Plain words {number}")
    await library.add(folder)
    await until(lambda: library.at_work is not None and library.at_work.is_ocr)
    library.pause()
    found = {Path(file.path).name: file for file in (await library.ask(status_of)).files}
    read = {name for name, file in found.items() if file.state is FileState.INDEXED}
    assert read - {"a.pdf"} == {f"c{number}.txt" for number in range(5)}
    assert len((await library.find("words")).hits) == 6
    library.go_on()
    after = await files(library)
    assert {file.state for file in after.values()} == {FileState.INDEXED}
    assert after["b.pdf"].num_ocr == 3


async def test_a_copy_of_a_scan_is_read_once(
    library: Library, folder: Path, switch: Switch
) -> None:
    switch.is_on = True
    for name in ("a.pdf", "b.pdf"):
        (folder / name).write_bytes(scanned(60))
    found = await added(library, folder)
    assert found["a.pdf"].document_id == found["b.pdf"].document_id
    assert {file.num_ocr for file in found.values()} == {1}


async def test_the_words_that_are_meant_are_boxed_on_the_picture(
    library: Library, folder: Path, switch: Switch
) -> None:
    switch.is_on = True
    (folder / "scan.pdf").write_bytes(scanned(60, 70))
    found = await added(library, folder)
    stretch = Stretch(page=2, page_to=2, start=5, end=7)
    view = await library.page(_document(found["scan.pdf"]), 2, stretch)
    assert (view.quote, view.flags) == ("70", ("read by OCR",))
    picture = await library.picture(view)
    (box,) = picture.boxes
    # The last two of seven letters in the left half of the page.
    assert box.left == pytest.approx(0.5 * 5 / 7, abs=0.01)
    assert box.left + box.width == pytest.approx(0.5, abs=0.01)


async def test_a_page_on_which_ocr_saw_nothing_is_not_offered_again(
    library: Library, folder: Path, switch: Switch
) -> None:
    switch.is_on = True
    file = PdfFile()
    file.picture_page()
    (folder / "black.pdf").write_bytes(file.data())
    found = await added(library, folder)
    assert found["black.pdf"].state is FileState.NO_TEXT
    assert found["black.pdf"].message == "1 of 1 page has no text."
    assert found["black.pdf"].num_unread == 0


async def test_a_file_that_is_removed_is_not_read_to_its_end(
    library: Library, folder: Path, switch: Switch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.documents.intake.LOOK_S", 0.0)
    switch.is_on = True
    file = PdfFile()
    for number in range(40):
        file.picture_page(fake_ocr.rgb((60 + number,) * 3))  # type: ignore[arg-type]
    (folder / "scan.pdf").write_bytes(file.data())
    await library.add(folder)
    await until(lambda: library.at_work is not None and library.at_work.is_ocr)
    library.pause()
    await library.remove(folder)
    library.go_on()
    await library.settled()
    assert (await library.ask(status_of)).files == ()
    (num,) = await library.ask(
        lambda tables: tables.execute("select count(*) from document").fetchone()
    )
    assert num == 0


async def test_how_long_ocr_takes_is_kept_apart_from_other_reading(library: Library) -> None:
    store = library._store
    await store.run(lambda tables: note_pace(tables, num_pages=9, num_bytes=9, seconds=1))
    await store.run(
        lambda tables: note_pace(tables, num_pages=2, num_bytes=9, seconds=30, num_ocr=2)
    )
    cost = await library.ask(lambda tables: cost_of(tables, "/"))
    assert cost.seconds == 0
    assert await library.ask(ocr_seconds_a_page) == 15
    known = await library.ask(pace)
    assert known is not None and known.pages_per_s == 9
