"""Files of every kind, damaged at random: each ends in a state, and none holds the reader up."""

import io
import random
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest

from app.documents.document import Facts, FileState, Page, Unreadable
from app.documents.library import Library
from app.documents.overview import status_of
from app.documents.reading import Limits, Reader
from tests.app.documents.office_files import (
    docx,
    epub,
    opendocument,
    paragraph,
    pptx,
    run,
    shape,
    word_table,
    xlsx,
    zipped,
)
from tests.app.documents.pdf_file import PdfFile, pdf_of, shown

TRIES = 12


def mail() -> bytes:
    made = EmailMessage()
    made["Subject"], made["From"] = "Grüße", "a@b.example"
    made.set_content("words")
    made.add_alternative("<p>words", subtype="html")
    made.add_attachment(pdf_of([["x"]]), maintype="application", subtype="pdf", filename="a.pdf")
    return bytes(made)


def drawn() -> bytes:
    file = PdfFile()
    file.page(shown("words", 72, 700) + b"1 1 1 rg " + shown("white", 72, 600))
    file.picture_page()
    return file.data()


BODY = paragraph("words", run("hidden", "<w:vanish/>"), style="Heading1") + word_table(("a", "b"))
CELLS = '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" s="1"><v>46097.5</v></c></row>'
FILES = {
    "a.pdf": drawn(),
    "b.pdf": pdf_of([["words"]], password="x"),
    "a.docx": docx(BODY, {"styles": '<w:style w:styleId="a"/>', "header": paragraph("head")}),
    "a.pptx": pptx([shape("one", "title"), shape("two")], {1: "notes"}),
    "a.xlsx": xlsx({"S": CELLS}, ("text",), ("dd.mm.yyyy",)),
    "a.odt": opendocument("text", '<text:h text:outline-level="1">x</text:h><text:p>y</text:p>'),
    "a.ods": opendocument("spreadsheet", "<table:table><table:table-row/></table:table>"),
    "a.epub": epub({"one": "<h1>One</h1><p>words"}, ("one",)),
    "a.rtf": rb"{\rtf1\ansi{\fonttbl{\f0 A;}}\f0 words\u8211 ?\'fc{\v x}\trowd a\cell\row\par}",
    "a.html": b"<!doctype html><p style='color:#fff'>x<table><tr><td>1<td>2</table>",
    "a.md": b"# T\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nx\n```\n<!-- c -->",
    "a.csv": 'Name;Preis\n"Düse; groß";1,5\n'.encode("cp1252"),
    "a.eml": mail(),
    "a.ipynb": b'{"cells": [{"cell_type": "code", "source": ["x"], "outputs": [{"text": "y"}]}]}',
    "a.txt": "words über alles".encode("utf-16"),
}


def damaged(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(changed) or 1)
        length = chance.randint(1, 12)
        piece = chance.randbytes(length) if chance.random() < 0.6 else data[place - 20 : place]
        match chance.randrange(4):
            case 0:
                changed[place : place + len(piece)] = piece
            case 1:
                changed[place:place] = piece
            case 2:
                del changed[place : place + length]
            case _:
                changed[place:] = changed[place:][: chance.randint(0, len(changed))]
    return bytes(changed)


def damaged_inside(data: bytes, chance: random.Random) -> bytes:
    """An archive that is sound, of which one part is not."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(sorted(members))
    return zipped({**members, name: damaged(members[name], chance)})


async def state_of(reader: Reader, path: Path) -> FileState:
    facts = None
    try:
        async for part in reader.read(path):
            assert isinstance(part, Page | Facts)
            facts = part if isinstance(part, Facts) else facts
    except Unreadable as problem:
        assert str(problem).endswith(".")
        return problem.state
    assert facts is not None
    return FileState.INDEXED


@pytest.mark.parametrize("name", FILES)
async def test_whatever_is_wrong_with_a_file_it_has_a_state(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    reader = Reader(limits=Limits(seconds=5))
    seen = []
    try:
        for number in range(TRIES):
            data = FILES[name]
            is_archive = data.startswith(b"PK") and number % 2
            changed = (damaged_inside if is_archive else damaged)(data, chance) if number else data
            path = tmp_path / f"{number}{name}"
            path.write_bytes(changed)
            seen.append(await state_of(reader, path))
    finally:
        await reader.close()
    # A damaged file is no reason to lose the process.
    assert FileState.FAILED not in seen
    expected = FileState.NEEDS_PASSWORD if name == "b.pdf" else FileState.INDEXED
    assert seen[0] is (FileState.NO_TEXT if name == "a.ods" else expected)


@pytest.mark.parametrize("num_each", [3, pytest.param(500, marks=pytest.mark.nightly)])
async def test_none_of_many_is_lost_from_the_counters(num_each: int, room: Path) -> None:
    folder = room / "papers"
    folder.mkdir()
    chance = random.Random(6)
    for name, data in FILES.items():
        for number in range(num_each):
            is_archive = data.startswith(b"PK") and number % 2
            changed = (damaged_inside if is_archive else damaged)(data, chance)
            (folder / f"{number}{name}").write_bytes(changed)
    library = Library(room / "documents.sqlite3", Reader(limits=Limits(seconds=5)))
    try:
        await library.prepare()
        await library.add(folder)
        await library.settled()
        status = await library.ask(status_of)
    finally:
        await library.close()
    assert len(status.files) == sum(status.counts.values()) == num_each * len(FILES)
    assert FileState.WAITING not in status.counts
    # None ended the process that reads, and none had to be given up.
    assert [file for file in status.files if file.state is FileState.FAILED] == []
    assert all(file.message for file in status.files if file.state is not FileState.INDEXED)
    print(dict(status.counts))
