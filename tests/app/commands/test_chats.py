"""`chats`: the history from a terminal."""

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from app.commands.carry_out import carry_out
from app.commands.options import Options
from engine.errors import HistoryError, NotFound, UsageError
from tests.app.commands.console import Recorder
from tests.fakes_model import FakeEngine, FakeModelServices
from tests.waiting import until


async def chats(services: FakeModelServices, action: str, **options: Any) -> Recorder:
    console = Recorder()
    await carry_out(services, Options(command="chats", action=action, **options), console)
    return console


async def say(services: FakeModelServices, text: str) -> str:
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, text)
    await job.finished()
    return conversation.conversation_id


async def test_the_newest_comes_first(services: FakeModelServices) -> None:
    one, two = await say(services, "First words"), await say(services, "Second 🙂")
    console = await chats(services, "list")
    lines = console.out.splitlines()
    assert [line.split()[0] for line in lines] == [two, one]
    assert lines[0].endswith("Second 🙂")
    rows = (await chats(services, "list", json=True)).json()["chats"]
    assert [row["id"] for row in rows] == [two, one]
    assert rows[0]["title"] == "Second 🙂"
    assert {"created_at", "updated_at"} <= rows[0].keys()


async def test_an_empty_history_is_said(services: FakeModelServices) -> None:
    console = await chats(services, "list")
    assert (console.out, console.notes) == ("", ["There are no conversations yet."])
    assert (await chats(services, "list", json=True)).json() == {"chats": []}


async def test_what_was_said_is_found(services: FakeModelServices) -> None:
    one = await say(services, "Where do lighthouses stand?")
    await say(services, "Something else")
    console = await chats(services, "search", text="lighthouse")
    assert one in console.out and "Something" not in console.out
    rows = (await chats(services, "search", text="lighthouse", json=True)).json()["chats"]
    # The title and the message hold it: one conversation with two matches.
    assert [(row["id"], len(row["matches"])) for row in rows] == [(one, 2)]
    assert (await chats(services, "search", text="nowhere")).notes == [
        "Nothing was found for 'nowhere'."
    ]


async def test_a_conversation_is_shown(services: FakeModelServices) -> None:
    one = await say(services, "Hello")
    assert (await chats(services, "show", ids=(one,))).out == (
        "# Hello\n\n## You\nHello\n\n## Inglenook\nGood day 🙂\n"
    )
    shown = (await chats(services, "show", ids=(one,), json=True)).json()
    assert [each["content"] for each in shown["messages"]] == ["Hello", "Good day 🙂"]
    assert shown["messages"][1]["timings"]["completion_tokens"] == 13


async def test_an_unknown_conversation_is_a_sentence(services: FakeModelServices) -> None:
    for action in ("show", "export", "delete"):
        with pytest.raises(NotFound, match="There is no conversation nobody"):
            await chats(services, action, ids=("nobody",), yes=True)


async def test_what_was_exported_can_be_imported(services: FakeModelServices, home: Path) -> None:
    one = await say(services, "Hello 🙂")
    file = home / "chats.json"
    await chats(services, "export", file=str(file))
    if os.name != "nt":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(home.glob("*.part")) == []
    printed = await chats(services, "export", ids=(one,))
    assert printed.json()["conversations"] == json.loads(file.read_text())["conversations"]
    await chats(services, "delete", ids=(one, one), yes=True)
    console = await chats(services, "import", file=str(file))
    assert console.notes[0].startswith("1 conversations were taken in")
    console = await chats(services, "import", file=str(file))
    assert "1 were here already" in console.notes[0]
    shown = (await chats(services, "show", ids=(one,), json=True)).json()
    assert shown["title"] == "Hello 🙂"


@pytest.mark.parametrize("place", ["/", "", "no-such-folder/x.json"])
async def test_a_place_that_cannot_be_written_is_a_sentence(
    services: FakeModelServices, home: Path, place: str
) -> None:
    (home / "folder").mkdir()
    target = "/" if place == "/" else str(home / (place or "folder"))
    with pytest.raises(HistoryError, match="could not be written"):
        await chats(services, "export", file=target)
    assert list(home.rglob("*.part")) == []


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xff", b"[" * 100_000, b"{}", b"[]"])
async def test_a_file_that_is_no_export_is_a_sentence(
    services: FakeModelServices, home: Path, content: bytes
) -> None:
    file = home / "x.json"
    file.write_bytes(content)
    with pytest.raises(HistoryError, match="export"):
        await chats(services, "import", file=str(file))
    with pytest.raises(HistoryError, match="cannot be read"):
        await chats(services, "import", file=str(home))


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
@pytest.mark.parametrize("action", ["export", "import"])
async def test_a_pipe_is_neither_replaced_nor_waited_for(
    services: FakeModelServices, home: Path, action: str
) -> None:
    os.mkfifo(home / "pipe")
    with pytest.raises(UsageError, match="a pipe or a device"):
        await chats(services, action, file=str(home / "pipe"))
    assert (home / "pipe").is_fifo()


async def test_a_time_that_no_calendar_knows_is_refused(
    services: FakeModelServices, home: Path
) -> None:
    file = home / "x.json"
    file.write_text(
        '{"inglenook": 1, "conversations": [{"id": "a", "created_at": 1e30, "messages": []}]}'
    )
    with pytest.raises(HistoryError, match="`created_at` of conversation 1 is not a time"):
        await chats(services, "import", file=str(file))
    await chats(services, "list")


async def test_deleting_needs_a_yes(services: FakeModelServices) -> None:
    one = await say(services, "Hello")
    with pytest.raises(UsageError, match="--yes"):
        await chats(services, "delete", ids=(one,))
    assert len(await services.conversations.list()) == 1


async def test_deleting_leaves_nothing_in_any_file(services: FakeModelServices) -> None:
    one = await say(services, "xylophone secret")
    assert (await chats(services, "delete", ids=(one,), yes=True)).notes == ["1 deleted."]
    files = [file for file in services.paths.data.rglob("*") if file.is_file()]
    assert files and not any(b"xylophone" in file.read_bytes() for file in files)


async def test_one_that_is_being_answered_can_be_deleted(paths: Any) -> None:
    services = FakeModelServices(paths, FakeEngine())
    conversation = await services.conversations.create()
    job = await services.jobs.send(conversation.conversation_id, "Hello")
    await until(lambda: services.engine.streams)
    await asyncio.wait_for(
        chats(services, "delete", ids=(conversation.conversation_id,), yes=True), 5
    )
    await asyncio.wait_for(job.finished(), 5)
    assert services.engine.streams[0].is_aborted
    assert await services.conversations.list() == []
    await services.close()


async def test_what_is_deleted_is_forgotten_by_the_engine(services: FakeModelServices) -> None:
    chat = (await services.conversations.create("Gone")).conversation_id
    await (await services.jobs.send(chat, "Hello")).finished()
    await chats(services, "delete", ids=(chat,), yes=True)
    await until(lambda: services.engine.forgotten == [chat])
