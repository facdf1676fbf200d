"""Documents that are handed over by the page, and kept in a folder of our own."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.documents import received as module
from app.documents.received import Received
from app.documents.scan import sha256_of
from app.file_name import LONGEST_NAME
from engine.errors import UsageError


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def broken() -> AsyncIterator[bytes]:
    yield b"half"
    raise RuntimeError


@pytest.fixture
def received(tmp_path: Path) -> Received:
    return Received(tmp_path / "received")


async def take(received: Received, name: str, data: bytes) -> Path:
    return await received.take(name, len(data), pieces(data))


async def test_a_file_is_kept_once_and_never_over_another(received: Received) -> None:
    path = await take(received, "lease.txt", b"one")
    assert path == received.folder / "lease.txt" and path.read_bytes() == b"one"
    assert await take(received, "lease.txt", b"one") == path
    other = await take(received, "lease.txt", b"two")
    assert other.name == "lease (2).txt"
    assert await take(received, "lease.txt", b"two") == other
    assert {each.name for each in received.folder.iterdir()} == {"lease.txt", "lease (2).txt"}


@pytest.mark.parametrize(
    "name",
    [
        *("../../evil.txt", "/etc/evil.txt", "a\nb.txt", "C:\\x\\y.txt", "\0.txt", "x" * 300),
        *("契" * 300, "a\udce9.txt"),
    ],
)
async def test_a_name_leads_nowhere_else(received: Received, name: str) -> None:
    named = name if name.endswith(".txt") else f"{name}.txt"
    path = await take(received, named, b"words")
    assert path.parent == received.folder and len(path.stem.encode()) <= LONGEST_NAME
    assert "\n" not in path.name and not path.name.startswith(".")


async def test_what_cannot_be_read_is_refused_before_it_comes(received: Received) -> None:
    for name, num_bytes, words in (
        ("movie.mp4", 5, "is no kind of file that is read"),
        (".pdf", 5, "is no kind of file that is read"),
        ("a.pdf", 0, "is empty"),
        ("a.pdf", 300_000_000, "300 MB, and files up to 200 MB"),
    ):
        with pytest.raises(UsageError, match=words):
            received.check(name, num_bytes)
    full = Received(received.folder, free=lambda folder: 1000)
    with pytest.raises(UsageError, match="make room, or add it by its path"):
        full.check("a.pdf", 5)


async def test_of_what_breaks_off_nothing_is_left(received: Received) -> None:
    with pytest.raises(RuntimeError):
        await received.take("a.txt", 9, broken())
    for data in (b"short", b"far too much of it"):
        with pytest.raises(UsageError, match="choose it again"):
            await received.take("a.txt", 9, pieces(data))
    assert list(received.folder.iterdir()) == []
    (received.folder / ".coming-x").touch()
    Received(received.folder)
    assert list(received.folder.iterdir()) == []


async def test_only_our_own_copies_are_deleted(received: Received, tmp_path: Path) -> None:
    path = await take(received, "a.txt", b"one")
    await take(received, "b.txt", b"two")
    own = tmp_path / "mine.txt"
    own.write_text("mine")
    assert received.has(path) and not received.has(own)
    with pytest.raises(UsageError):
        received.delete(own)
    assert received.delete(path) == 1 and received.delete(path) == 0
    assert received.delete(received.folder) == 1
    assert own.exists()


def test_no_path_leads_out_of_the_folder(received: Received, tmp_path: Path) -> None:
    folder = received.folder
    (folder / "inner").mkdir(parents=True)
    outside = tmp_path / "history.sqlite3"
    outside.write_text("mine")
    (folder / "inner" / "deep.txt").touch()
    for path in (
        folder / ".." / outside.name,
        folder / "inner" / ".." / ".." / outside.name,
        folder / "inner" / "deep.txt",
        folder / "..",
        tmp_path,
    ):
        assert not received.has(path)
        with pytest.raises(UsageError, match="not one of the files"):
            received.delete(path)
    link = folder / "link.txt"
    link.symlink_to(outside)
    assert received.delete(link) == 1 and not link.is_symlink()
    assert outside.read_text() == "mine" and (folder / "inner" / "deep.txt").exists()


async def test_what_is_still_coming_is_not_deleted(received: Received) -> None:
    assert received.delete(received.folder) == 0
    await take(received, "a.txt", b"one")

    async def interrupted() -> AsyncIterator[bytes]:
        yield b"tw"
        (coming,) = received.folder.glob(".coming-*")
        with pytest.raises(UsageError):
            received.delete(coming)
        assert received.delete(received.folder) == 1
        yield b"o"

    path = await received.take("b.txt", 3, interrupted())
    assert path.read_bytes() == b"two"


async def test_the_event_loop_writes_and_reads_no_disk(
    received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[threading.Thread] = []
    hashed: list[str] = []
    fsync = os.fsync

    def noted_sync(descriptor: int) -> None:
        synced.append(threading.current_thread())
        fsync(descriptor)

    def noted_hash(path: str) -> str:
        assert threading.current_thread() is not threading.main_thread()
        hashed.append(path)
        return sha256_of(path)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(module, "sha256_of", noted_hash)
    first = await take(received, "a.txt", b"one")
    assert synced and threading.main_thread() not in synced and hashed == []
    # What comes is never read again, and what has another size cannot be the same.
    assert await take(received, "a.txt", b"one") == first and hashed == [str(first)]
    await take(received, "a.txt", b"three")
    assert hashed == [str(first)]


async def test_two_of_one_name_at_once_are_both_kept(received: Received) -> None:
    names = [f"{number:03}" for number in range(8)]
    paths = await asyncio.gather(*(take(received, "a.txt", name.encode()) for name in names))
    assert len(set(paths)) == 8 and sorted(path.read_text() for path in paths) == names


async def test_who_gives_up_at_the_end_leaves_nothing(
    received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await take(received, "a.txt", b"one")
    begun, goes_on = threading.Event(), threading.Event()

    def slow_hash(path: str) -> str:
        begun.set()
        goes_on.wait(20)
        return sha256_of(path)

    monkeypatch.setattr(module, "sha256_of", slow_hash)
    coming = asyncio.create_task(take(received, "a.txt", b"two"))
    assert await asyncio.to_thread(begun.wait, 20)
    coming.cancel()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await coming
    assert [*received.folder.iterdir()] == [path]
