"""The reading process: it may do and suffer what it wants, and the app reads on."""

import asyncio
import contextlib
import errno
import hashlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from io import FileIO
from pathlib import Path

import psutil
import pytest

from app.documents import reading
from app.documents.document import Facts, FileState, Page, PageFlag, Unreadable
from app.documents.reading import Limits, Reader
from tests.app.documents.office_files import docx, paragraph, run, zipped
from tests.app.documents.pdf_file import PdfFile, pdf_of, shown

HARMFUL = (sys.executable, "-m", "tests.app.documents.harmful")
QUICK = Limits(seconds=1, seconds_a_page=0, clock_factor=4, tick_s=0.05)


@pytest.fixture
async def reader() -> AsyncIterator[Reader]:
    made = Reader()
    yield made
    await made.close()


@pytest.fixture
async def harmed() -> AsyncIterator[Reader]:
    made = Reader(HARMFUL, QUICK)
    yield made
    await made.close()


async def read(
    reader: Reader, path: Path, data: bytes | str, password: str = ""
) -> tuple[list[Page], Facts]:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    pages: list[Page] = []
    facts: Facts | None = None
    async for part in reader.read(path, password=password):
        if isinstance(part, Page):
            pages.append(part)
        else:
            facts = part
    assert facts is not None
    return pages, facts


async def state_of(reader: Reader, path: Path, data: bytes | str) -> tuple[FileState, str]:
    with pytest.raises(Unreadable) as caught:
        await read(reader, path, data)
    return caught.value.state, str(caught.value)


async def test_files_of_every_kind_are_read_by_one_process(reader: Reader, tmp_path: Path) -> None:
    locked = pdf_of([["Secret plans"]], password="abc")
    pages, facts = await read(reader, tmp_path / "a.pdf", locked, "abc")
    assert (pages[0].text, facts.kind, facts.num_pages) == ("Secret plans", "pdf", 1)
    assert facts.sha256 == hashlib.sha256(locked).hexdigest()
    process = reader._process
    ghost = docx(paragraph("Seen", run(" BANANA", "<w:vanish/>")))
    pages, facts = await read(reader, tmp_path / "b.pdf", ghost)
    assert pages[0].flags == {PageFlag.HIDDEN_LEFT_OUT}
    assert "is a Word document" in facts.notice
    # Encodings that no module of ours has asked for before the door was shut.
    words = "Договор продлевается каждый год, если его не расторгнут"
    for encoding in ("cp1251", "koi8_r", "utf-16"):
        pages, _ = await read(reader, tmp_path / "c.txt", words.encode(encoding))
        assert pages[0].text == words
    page = '<html><meta charset="shift_jis"><p>契約'.encode("shift_jis")
    assert (await read(reader, tmp_path / "d.html", page))[0][0].text == "契約"
    mail = b"From: a@b.example\nTo: =?iso-8859-2?q?J=E1n?= <c@d.example>\n\nwords"
    assert "Ján" in (await read(reader, tmp_path / "e.eml", mail))[0][0].text
    assert await state_of(reader, tmp_path / "f.zip", zipped({"x": "y"}))
    assert reader._process is process


async def test_facts_come_first_where_the_number_of_pages_is_known(
    reader: Reader, tmp_path: Path
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf_of([["x"]] * 120))
    parts = [part async for part in reader.read(path)]
    assert isinstance(parts[0], Facts) and parts[0].num_pages == 120
    assert [part.number for part in parts[1:-1] if isinstance(part, Page)] == list(range(1, 121))


@pytest.mark.parametrize("order", ["crash", "leave", "fail"])
async def test_a_file_that_ends_the_process_fails_alone(
    harmed: Reader, tmp_path: Path, order: str
) -> None:
    state, sentence = await state_of(harmed, tmp_path / "bad.txt", f"{order} now")
    assert state is FileState.FAILED
    assert sentence.startswith("bad.txt ended the process that reads files (")
    assert (await read(harmed, tmp_path / "good.txt", "words"))[0][0].text == "words"


@pytest.mark.parametrize("order", ["hang", "sleep"])
async def test_a_file_without_an_end_is_given_up(
    harmed: Reader, tmp_path: Path, order: str
) -> None:
    state, sentence = await state_of(harmed, tmp_path / "bad.txt", f"{order} now")
    assert state is FileState.FAILED
    assert "was given up after" in sentence and "may take 1." in sentence
    assert (await read(harmed, tmp_path / "good.txt", "words"))[0][0].text == "words"


async def test_a_long_file_may_take_longer(tmp_path: Path) -> None:
    limits = Limits(seconds=0.5, seconds_a_page=600, tick_s=0.05)
    reader = Reader(HARMFUL, limits)
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await read(reader, tmp_path / "bad.txt", "hang now")
    finally:
        await reader.close()


async def test_a_file_that_eats_memory_is_refused_by_the_system(tmp_path: Path) -> None:
    reader = Reader(HARMFUL)
    try:
        state, sentence = await state_of(reader, tmp_path / "bad.txt", "hoard now")
        assert state is FileState.FAILED
        assert sentence == "bad.txt takes more than 2 GB of memory to read."
        assert (await read(reader, tmp_path / "good.txt", "words"))[0][0].text == "words"
    finally:
        await reader.close()


async def test_memory_is_watched_where_the_system_keeps_no_limit(tmp_path: Path) -> None:
    limits = Limits(memory_bytes=200_000_000, tick_s=0.02)
    reader = Reader(HARMFUL, limits)
    try:
        state, sentence = await state_of(reader, tmp_path / "bad.txt", "hoard now")
        assert (state, "more than 0.2 GB" in sentence) == (FileState.FAILED, True)
    finally:
        await reader.close()


@pytest.mark.parametrize(
    "what", ["file", "write", "list", "socket", "name", "program", "descriptor", "module"]
)
async def test_the_process_can_open_nothing(harmed: Reader, tmp_path: Path, what: str) -> None:
    pages, _ = await read(harmed, tmp_path / "a.txt", f"attempt {what}")
    assert pages[1].text.startswith("refused: ")


async def test_the_process_knows_nothing_of_our_settings(
    harmed: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INGLENOOK_API_KEY", "secret")
    pages, _ = await read(harmed, tmp_path / "a.txt", "key ?")
    assert pages[1].text == "[]"


def pages_of(*numbers: int) -> str:
    page = {"label": "1", "text": "a page", "headings": [], "flags": []}
    return json.dumps({"pages": [{"number": number, **page} for number in numbers]})


@pytest.mark.parametrize(
    "said",
    [
        '{"pages": [{"number": "x"}]}',
        '{"end": {"kind": "txt", "num_pages": Infinity, "title": "", "notice": ""}}',
        pages_of(2),
        pages_of(1, 1),
        pages_of(1, 2, 4),
        pages_of(10**9),
    ],
)
async def test_what_a_captured_process_says_is_not_believed(
    harmed: Reader, tmp_path: Path, said: str
) -> None:
    state, sentence = await state_of(harmed, tmp_path / "bad.txt", f"babble {said}")
    assert (state, "makes no sense" in sentence) == (FileState.FAILED, True)
    assert (await read(harmed, tmp_path / "good.txt", "words"))[0][0].text == "words"


async def test_no_number_of_pages_gives_a_process_all_the_time_it_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_SECONDS", 1)
    facts = {"kind": "txt", "num_pages": 10**400, "title": "", "notice": ""}
    reader = Reader(HARMFUL, Limits(seconds=0.2, seconds_a_page=600, clock_factor=1, tick_s=0.05))
    try:
        _, sentence = await state_of(
            reader, tmp_path / "bad.txt", f"babble {json.dumps({'facts': facts})}"
        )
        assert "was given up after" in sentence and "may take 1." in sentence
    finally:
        await reader.close()


async def test_a_disk_that_breaks_is_no_fault_of_the_process(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "good.txt").write_text("words")
    with monkeypatch.context() as patched:
        patched.setattr(reading, "open_regular", lambda path, _: Broken(path))
        state, sentence = await state_of(reader, tmp_path / "bad.txt", "words")
    assert state is FileState.FAILED
    assert sentence.startswith("bad.txt cannot be read to its end (Input/output error): ")
    assert (await read(reader, tmp_path / "good.txt", "words"))[0][0].text == "words"


async def test_the_process_is_renewed_after_many_files(tmp_path: Path) -> None:
    reader = Reader(HARMFUL, Limits(files_a_process=2))
    try:
        seen = [(await read(reader, tmp_path / "a.txt", "who ?"))[0][1].text for _ in range(4)]
        assert seen[0] == seen[1] != seen[2] == seen[3]
    finally:
        await reader.close()


async def test_the_process_is_renewed_when_it_has_grown(tmp_path: Path) -> None:
    reader = Reader(HARMFUL, Limits(grown_bytes=150_000_000))
    try:
        small = (await read(reader, tmp_path / "a.txt", "grow 1"))[0][1].text
        large = (await read(reader, tmp_path / "a.txt", "grow 200"))[0][1].text
        fresh = (await read(reader, tmp_path / "a.txt", "grow 1"))[0][1].text
        assert small == large != fresh
    finally:
        await reader.close()


async def test_who_is_cancelled_ends_the_process(harmed: Reader, tmp_path: Path) -> None:
    task = asyncio.create_task(read(harmed, tmp_path / "a.txt", "sleep now"))
    while harmed._process is None:
        await asyncio.sleep(0.01)
    process = psutil.Process(harmed._process._process.pid)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(process.wait, 10)
    assert (await read(harmed, tmp_path / "b.txt", "words"))[0][0].text == "words"


async def test_who_stops_listening_leaves_the_next_file_alone(
    reader: Reader, tmp_path: Path
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf_of([[f"page {number}"] for number in range(500)]))
    async with contextlib.aclosing(reader.read(path)) as parts:
        async for part in parts:
            if isinstance(part, Page):
                break
    pages, _ = await read(reader, tmp_path / "b.txt", "words")
    assert [page.text for page in pages] == ["words"]


async def test_two_who_ask_at_once_are_answered_in_turn(reader: Reader, tmp_path: Path) -> None:
    asked = [read(reader, tmp_path / f"{name}.txt", name) for name in ("one", "two", "three")]
    found = await asyncio.gather(*asked)
    assert [pages[0].text for pages, _ in found] == ["one", "two", "three"]


async def test_a_file_that_is_written_meanwhile_is_not_taken(tmp_path: Path) -> None:
    path, signal = tmp_path / "a.txt", tmp_path / "go"
    # More than the pipe holds: some of it is read only when the process asks for it.
    path.write_bytes(b"word " * 500_000)
    reader = Reader((*HARMFUL, str(signal)))

    async def write() -> None:
        while reader._process is None:
            await asyncio.sleep(0.01)
        with open(path, "ab") as file:
            file.write(b"more")
        signal.touch()

    writing = asyncio.create_task(write())
    try:
        with pytest.raises(Unreadable, match="was being written while it was read"):
            async for _ in reader.read(path):
                pass
    finally:
        await writing
        await reader.close()


async def test_of_a_file_that_is_replaced_meanwhile_all_of_the_old_one_is_read(
    tmp_path: Path,
) -> None:
    path, signal = tmp_path / "a.txt", tmp_path / "go"
    old = b"old words " * 300_000
    path.write_bytes(old)
    reader = Reader((*HARMFUL, str(signal)))

    async def replace() -> None:
        while reader._process is None:
            await asyncio.sleep(0.01)
        (tmp_path / "new.txt").write_bytes(b"new words")
        (tmp_path / "new.txt").replace(path)
        signal.touch()

    replacing = asyncio.create_task(replace())
    try:
        parts = [part async for part in reader.read(path)]
    finally:
        await replacing
        await reader.close()
    text = "".join(part.text for part in parts if isinstance(part, Page))
    assert text.count("old") == 300_000 and "new" not in text
    assert isinstance(parts[-1], Facts)
    assert parts[-1].sha256 == hashlib.sha256(old).hexdigest()


async def test_a_process_that_cannot_be_started_is_said(tmp_path: Path) -> None:
    reader = Reader(("/no/such/program",))
    state, sentence = await state_of(reader, tmp_path / "a.txt", "words")
    assert state is FileState.FAILED
    assert "cannot be started (No such file or directory)" in sentence
    reader = Reader((sys.executable, "-c", "import sys; sys.exit(5)"))
    state, sentence = await state_of(reader, tmp_path / "a.txt", "words")
    assert (state, "cannot be started (5)" in sentence) == (FileState.FAILED, True)


async def test_a_link_out_of_the_folder_and_a_pipe_are_not_read(
    reader: Reader, tmp_path: Path
) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    os.mkfifo(root / "pipe.txt")
    for name in ("link.txt", "pipe.txt"):
        with pytest.raises(Unreadable) as caught:
            async for _ in reader.read(root / name, root=root):
                pass
        assert caught.value.state is FileState.UNSUPPORTED


async def test_five_thousand_pages_are_read_in_little_memory(
    reader: Reader, tmp_path: Path
) -> None:
    file = PdfFile()
    for number in range(1, 5001):
        file.page(shown(f"Marker page {number} of 5000", 72, 700))
    path = tmp_path / "long.pdf"
    path.write_bytes(file.data())
    await read(reader, tmp_path / "a.txt", "words")
    assert reader._process is not None
    process = reader._process
    ours = psutil.Process()
    before, theirs_before = ours.memory_info().rss, process.memory_bytes()
    most = theirs_most = 0
    marked = None
    async for part in reader.read(path):
        if isinstance(part, Page) and part.number % 250 == 0:
            most = max(most, ours.memory_info().rss)
            theirs_most = max(theirs_most, process.memory_bytes())
        if isinstance(part, Page) and "4321" in part.text:
            marked = part.number
    assert marked == 4321
    assert most - before < 50_000_000
    assert theirs_most - theirs_before < 100_000_000


async def test_a_process_whose_app_is_gone_ends(tmp_path: Path) -> None:
    reader = Reader()
    await read(reader, tmp_path / "a.txt", "words")
    assert reader._process is not None
    inner = reader._process._process
    assert inner.stdin is not None
    inner.stdin.close()
    started = time.monotonic()
    assert await asyncio.to_thread(inner.wait, 20) == 0
    assert time.monotonic() - started < 20
    await reader.close()
