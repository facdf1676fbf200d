"""Model files that the page hands over: whole and a model, or nothing is left of them."""

import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.models.drop import Drop, Drops
from app.models.part_file import SPARE_BYTES
from engine.backends.llama_cpp.chat_file import check_chat_file
from engine.errors import DownloadEnded, InglenookError, UsageError
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


class Folder:
    """A models folder, and what is said to be there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: list[str] = []
        self.free = 10**12
        self.downloads: set[str] = set()
        self.drops = self.opened()

    def opened(self) -> Drops:
        return Drops(
            self.path,
            lambda path: self.done.append(path.name),
            lambda name: name in self.downloads,
            free=lambda _: self.free,
        )

    @property
    def names(self) -> list[str]:
        return sorted(each.name for each in self.path.iterdir())

    async def take(self, name: str, content: bytes) -> Path:
        return await self.drops.take(Drop.of(name, len(content)), in_pieces(content))


async def in_pieces(content: bytes, size: int = 60_000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]
        await asyncio.sleep(0)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "models").mkdir()
    return Folder(tmp_path / "models")


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    return write_tiny_model(tmp_path / "source.gguf").read_bytes()


async def test_a_whole_model_is_in_its_place_to_the_byte(folder: Folder, content: bytes) -> None:
    path = await folder.take("tiny.GGUF", content)
    assert path.read_bytes() == content
    assert folder.names == folder.done == ["tiny.gguf"]


async def test_an_adapter_is_taken_too(folder: Folder, tmp_path: Path) -> None:
    await folder.take("pirate.gguf", write_tiny_adapter(tmp_path / "a.gguf").read_bytes())
    assert folder.names == ["pirate.gguf"]


async def test_what_is_no_model_is_refused_at_its_beginning(folder: Folder) -> None:
    seen = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal seen
        while True:
            seen += 1
            yield b"<html>" + bytes(1_000_000)

    with pytest.raises(UsageError, match="page.gguf is not a GGUF model, whatever its name says"):
        await folder.drops.take(Drop.of("page.gguf", 10**9), endless())
    assert seen < 10
    assert folder.names == folder.done == []


async def test_a_model_that_lacks_its_end_is_refused(folder: Folder, content: bytes) -> None:
    with pytest.raises(InglenookError, match=r"tiny.gguf is cut off or damaged"):
        await folder.take("tiny.gguf", content[: len(content) // 2])
    assert folder.names == folder.done == []


async def test_fewer_bytes_than_announced_are_not_kept(folder: Folder, content: bytes) -> None:
    with pytest.raises(UsageError, match="ended at .* choose it again"):
        await folder.drops.take(Drop.of("tiny.gguf", len(content) + 7), in_pieces(content))
    assert folder.names == folder.done == []


async def test_a_closed_connection_leaves_nothing(folder: Folder, content: bytes) -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield content + bytes(8_000_000)
        assert len(folder.names) == 1
        raise ConnectionResetError

    with pytest.raises(InglenookError):
        await folder.drops.take(Drop.of("tiny.gguf", 10**9), breaking())
    assert folder.names == folder.done == []
    await folder.take("tiny.gguf", content)


async def test_the_end_of_the_app_leaves_nothing(folder: Folder, content: bytes) -> None:
    waits = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield content + bytes(8_000_000)
        waits.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(folder.drops.take(Drop.of("tiny.gguf", 10**9), slow()))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert folder.names == []


async def test_what_a_killed_process_left_is_swept_away(folder: Folder, content: bytes) -> None:
    await folder.take("tiny.gguf", content)
    (folder.path / ".drop-1234").mkdir()
    (folder.path / ".drop-1234" / "half.gguf").write_bytes(content)
    folder.opened()
    assert folder.names == ["tiny.gguf"]


async def test_a_name_that_is_taken_stays_with_its_file(folder: Folder, content: bytes) -> None:
    await folder.take("tiny.gguf", content)
    with pytest.raises(UsageError, match="is in the models folder already: remove it first"):
        await folder.take("tiny.gguf", content + b"x")
    assert (folder.path / "tiny.gguf").read_bytes() == content
    folder.downloads.add("other.gguf")
    with pytest.raises(UsageError, match="other.gguf is on its way already"):
        await folder.take("other.gguf", content)


async def test_a_file_that_comes_meanwhile_is_not_replaced(folder: Folder, content: bytes) -> None:
    async def overtaken() -> AsyncIterator[bytes]:
        yield content
        (folder.path / "tiny.gguf").write_bytes(b"another one")

    with pytest.raises(UsageError, match=r"There is a file .*/tiny\.gguf already"):
        await folder.drops.take(Drop.of("tiny.gguf", len(content)), overtaken())
    assert (folder.path / "tiny.gguf").read_bytes() == b"another one"
    assert folder.names == ["tiny.gguf"]


async def test_a_file_that_comes_in_the_last_moment_is_not_replaced(
    folder: Folder, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = os.fsync

    def overtaken(descriptor: int) -> None:
        seen(descriptor)
        (folder.path / "tiny.gguf").symlink_to("nowhere.gguf")

    monkeypatch.setattr(os, "fsync", overtaken)
    with pytest.raises(UsageError, match=r"There is a file .*/tiny\.gguf already"):
        await folder.take("tiny.gguf", content)
    assert os.readlink(folder.path / "tiny.gguf") == "nowhere.gguf"
    assert folder.names == ["tiny.gguf"] and folder.done == []


async def test_who_is_cancelled_while_it_is_checked_leaves_nothing(
    folder: Folder, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, goes_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    check = check_chat_file

    def slow(path: Path) -> None:
        loop.call_soon_threadsafe(checked.set)
        assert goes_on.wait(20)
        check(path)

    monkeypatch.setattr("app.models.drop.check_chat_file", slow)
    task = asyncio.create_task(folder.take("tiny.gguf", content))
    await checked.wait()
    task.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert folder.names == folder.done == []


async def test_the_loop_turns_while_what_is_left_is_removed(
    folder: Folder, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    rmtree = shutil.rmtree

    def noted(path: Path, ignore_errors: bool) -> None:
        threads.append(threading.current_thread())
        rmtree(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", noted)
    await folder.take("tiny.gguf", content)
    assert len(threads) == 1 and threads[0] is not threading.main_thread()


async def test_one_name_comes_once_at_a_time(folder: Folder, content: bytes) -> None:
    async def doubled() -> AsyncIterator[bytes]:
        with pytest.raises(UsageError, match="on its way already"):
            await folder.take("tiny.gguf", content)
        yield content

    await folder.drops.take(Drop.of("tiny.gguf", len(content)), doubled())
    assert folder.names == ["tiny.gguf"]


async def test_a_disk_without_room_is_told_before_anything_comes(
    folder: Folder, content: bytes
) -> None:
    folder.free = SPARE_BYTES + len(content) - 1
    with pytest.raises(DownloadEnded, match="make room"):
        await folder.take("tiny.gguf", content)
    folder.free += 1
    await folder.take("tiny.gguf", content)


async def test_a_disk_that_fills_up_meanwhile_leaves_nothing(
    folder: Folder, content: bytes
) -> None:
    async def filling() -> AsyncIterator[bytes]:
        yield content
        for _ in range(60):
            folder.free = 1000
            yield bytes(1_000_000)

    with pytest.raises(DownloadEnded, match="make room"):
        await folder.drops.take(Drop.of("tiny.gguf", 10**9), filling())
    assert folder.names == []


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("Qwen 3 [4B] (new).gguf", "Qwen 3 [4B] (new).gguf"),
        ("../../etc/m.gguf", "_.._etc_m.gguf"),
        ("..\\m.gguf", "_m.gguf"),
        ("a\x00b\n.gguf", "a_b_.gguf"),
        (".hidden.gguf", "hidden.gguf"),
        ("modèle.GGUF", "modèle.gguf"),
        (f"{'x' * 300}.gguf", f"{'x' * 200}.gguf"),
        (f"{'模' * 100}.gguf", f"{'模' * 66}.gguf"),
        (f"{'x' * 199}..gguf", f"{'x' * 199}.gguf"),
        (f"{'x' * 199}.y.gguf", f"{'x' * 199}.gguf"),
        ("a\udce9.gguf", "a_.gguf"),
    ],
)
def test_a_name_never_leads_out_of_the_folder(name: str, kept: str) -> None:
    assert Drop.of(name, 1).name == kept


@pytest.mark.parametrize(
    ("name", "num_bytes", "words"),
    [
        ("model.safetensors", 1, "model.safetensors is no GGUF file"),
        ("gguf", 1, "gguf is no GGUF file"),
        (".gguf", 1, ".gguf is no GGUF file"),
        ("m-00002-of-00003.gguf", 1, "is one of 3 files of a model: put all of them"),
        ("m.gguf", 0, "m.gguf is empty"),
    ],
)
def test_what_cannot_be_taken_is_said_in_a_sentence(name: str, num_bytes: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Drop.of(name, num_bytes)
