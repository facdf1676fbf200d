"""Files that are hard to read: what a person sees of each, through the real reading process."""

from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from app.documents.document import FileState
from app.documents.library import Library
from app.documents.overview import status_of
from app.documents.reading import Reader
from app.documents.rows import LibraryFile, roots
from tests.app.documents.difficult import (
    FILES,
    HABIBI,
    NUM_PAGES,
    PASSWORD,
    bomb,
    long_pdf,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shelf(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Library]:
    """A library that has read all of them, the two large ones as well."""
    folder = tmp_path_factory.mktemp("shelf")
    papers = folder / "papers"
    papers.mkdir()
    for name, data in FILES.items():
        (papers / name).write_bytes(data)
    (papers / "09_long.pdf").write_bytes(long_pdf())
    (papers / "10_bomb.docx").write_bytes(bomb())
    library = Library(folder / "documents.sqlite3", Reader())
    await library.prepare()
    await library.add(papers)
    await library.settled()
    yield library
    await library.close()


async def file(library: Library, name: str) -> LibraryFile:
    status = await library.ask(status_of)
    assert len(status.files) == sum(status.counts.values()) == 20
    (found,) = [each for each in status.files if Path(each.path).name == name]
    return found


@pytest.mark.parametrize(
    ("name", "state", "words"),
    [
        ("01_password.pdf", FileState.NEEDS_PASSWORD, "protected by a password"),
        ("02_scanned.pdf", FileState.NO_TEXT, "3 of 3 pages are pictures"),
        ("09_long.pdf", FileState.INDEXED, ""),
        ("10_bomb.docx", FileState.TOO_LARGE, "unpacks to 310 MB, more than the limit of 300 MB"),
        ("11_empty.pdf", FileState.EMPTY, "is empty: it has 0 bytes"),
        ("12_docx_named.pdf", FileState.INDEXED, "ends in .pdf and is a Word document"),
        ("18_password.docx", FileState.NEEDS_PASSWORD, "protected by a password"),
    ],
)
async def test_what_became_of_a_file_is_said(
    shelf: Library, name: str, state: FileState, words: str
) -> None:
    found = await file(shelf, name)
    assert found.state is state and words in found.message


@pytest.mark.parametrize(
    ("question", "name", "page", "words"),
    [
        ("Lorem ipsum consectetuer", "03_columns.pdf", 1, "consectetuer adipiscing elit. Ut purus"),
        ("toolkit for detecting", "04_turned.pdf", 1, "A toolkit for detecting and extracting"),
        ("いうえ", "05_japanese.pdf", 1, "あいうえお"),
        ("habibi", "06_arabic.pdf", 1, "habibi"),
        (HABIBI, "06_arabic.pdf", 1, HABIBI),
        ("Reduced to a mere case", "07_lost_table.pdf", 1, "Reduced to a mere case"),
        ("TestString123", "08_wrong_count.pdf", 1, "TestString123"),
        ("Marker page 4321 of 5000", "09_long.pdf", 4321, "Marker page 4321 of 5000"),
        ("linked images", "12_docx_named.pdf", 1, "Testing linked images"),
        ("Rechnung 9917", "13_utf16.txt", 1, "89,90 €"),
        ("ключ от дачи", "13_utf16.txt", 1, "ключ от дачи у Марины"),
        ("smart windows quotes", "14_windows.txt", 1, "“windows”"),
        (
            "Müller & Söhne",
            "15_semicolon.csv",
            1,
            "Kunde: Müller & Söhne | Ort: Köln | Betrag: 1.234,50",
        ),
        ("Gärtnerei Linde", "15_semicolon.csv", 1, "Kunde: Gärtnerei; Linde | Ort: Jena"),
        ("Vertrag KB-5521", "16_nested.eml", 2, "bis 31. Oktober 2029, Vertrag KB-5521"),
        ("Düse 312,00", "16_nested.eml", 3, "Bauteil: Düse | Preis: 312,00"),
        ("SKU-8847", "17_table.pdf", 1, "SKU-8847 A-7 450 427 -23"),
        ("SKU-8847", "17_table.pdf", 1, "Code Location Expected Actual Variance"),
        ("Total Variance Cost", "17_table.pdf", 1, "Total Variance Cost: $4,287.50"),
        ("first words of kettles", "19_book.epub", 1, "Chapter One"),
        ("Part 2.1 lanterns", "19_book.epub", 2, "Part 2.1"),
        ("When does the Lindqvist contract renew?", "20_hidden.docx", 1, "14 March 2027"),
    ],
)
async def test_its_words_are_found_where_they_stand(
    shelf: Library, question: str, name: str, page: int, words: str
) -> None:
    found = await shelf.find(question)
    assert found.is_enough
    hit = found.hits[0]
    assert (Path(hit.paths[0]).name, hit.page) == (name, page)
    assert words in hit.text


@pytest.mark.parametrize("question", ["BANANA", "evil", "vault opens at noon"])
async def test_what_nobody_sees_is_not_found(shelf: Library, question: str) -> None:
    assert not (await shelf.find(question)).is_enough


async def test_a_text_that_stands_twice_in_a_mail_is_found_once(shelf: Library) -> None:
    assert len((await shelf.find("zeppelin")).hits) == 1


async def test_the_index_holds_no_control_character(shelf: Library) -> None:
    texts = await shelf.ask(lambda tables: tables.execute("select text from page").fetchall())
    assert len(texts) > NUM_PAGES
    assert not any(
        ord(each) < 32 and each != "\n" or each == "\ufffd" for (text,) in texts for each in text
    )


async def test_a_bomb_takes_little_memory_and_an_empty_file_no_second_try(
    shelf: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = psutil.Process().memory_info().rss
    (root,) = await shelf.ask(roots)
    monkeypatch.setattr("app.documents.intake.sha256_of", lambda path: pytest.fail(path))
    await shelf.look()
    await shelf.settled()
    monkeypatch.undo()
    await shelf.add(Path(root.path) / "10_bomb.docx")
    await shelf.settled()
    assert psutil.Process().memory_info().rss - before < 200_000_000
    assert (await file(shelf, "10_bomb.docx")).state is FileState.TOO_LARGE


async def test_a_password_opens_the_file_and_is_written_nowhere(shelf: Library) -> None:
    (root,) = await shelf.ask(roots)
    place = Path(root.path) / "01_password.pdf"
    for password, state in (
        ("wrong-word", FileState.NEEDS_PASSWORD),
        (PASSWORD, FileState.INDEXED),
    ):
        await shelf.add(place, password=password)
        await shelf.settled()
        found = await file(shelf, "01_password.pdf")
        assert found.state is state
        kept = b"".join(each.read_bytes() for each in place.parents[1].glob("documents*"))
        assert len(kept) > 100_000
        assert password.encode() not in kept and password not in found.message
    (hit,) = (await shelf.find("vault of the mill")).hits
    assert Path(hit.paths[0]).name == "01_password.pdf"
