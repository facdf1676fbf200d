"""`chats`: the history from a terminal."""

import asyncio
import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.chat.message import MessageState
from app.commands.carry_out import carry_out
from app.commands.options import Options
from app.documents.citation import Citation, Span, Verdict
from app.documents.grounds import Grounds
from engine.errors import HistoryError, NotFound, UsageError
from tests.app.commands.console import Recorder
from tests.app.documents.test_grounds import quotation
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
    assert [line.split()[0] for line in lines] == [two[:8], one[:8]]
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
    (line,) = console.out.splitlines()
    assert line.startswith(one[:8]) and line.endswith("Where do lighthouses stand?")
    rows = (await chats(services, "search", text="lighthouse", json=True)).json()["chats"]
    assert [(row["id"], row["message_id"]) for row in rows] == [(one, None)]
    assert (await chats(services, "search", text="nowhere")).notes == [
        "Nothing was found for 'nowhere'."
    ]


async def test_words_of_a_message_stand_below_its_conversation(
    services: FakeModelServices,
) -> None:
    one = await say(services, "Hello")
    _, answer = await services.conversations.messages(one)
    line, words = (await chats(services, "search", text="day")).out.splitlines()
    assert line.split()[0] == one[:8] and words == "          Good day 🙂"
    (row,) = (await chats(services, "search", text="day", json=True)).json()["chats"]
    assert (row["message_id"], row["snippet"]) == (answer.message_id, "Good day 🙂")


async def imported(services: FakeModelServices, home: Path, *ids: str) -> None:
    rows = [{"id": each, "title": each, "messages": []} for each in ids]
    file = home / "ids.json"
    file.write_text(json.dumps({"inglenook": 1, "conversations": rows}))
    await chats(services, "import", file=str(file))


async def test_the_beginning_of_an_id_names_a_conversation(
    services: FakeModelServices, home: Path
) -> None:
    await imported(services, home, "abcd1", "abcd22", "abcd2", "ef")
    for given, whole in (("abcd1", "abcd1"), ("abcd22", "abcd22"), ("abcd2", "abcd2")):
        assert (await chats(services, "show", ids=(given,))).out == f"# {whole}\n"
    await imported(services, home, "0123456789", "another")
    assert (await chats(services, "show", ids=("0123",))).out == "# 0123456789\n"
    exported = (await chats(services, "export", ids=("0123", "012345", "anot"))).json()
    assert [each["id"] for each in exported["conversations"]] == ["0123456789", "another"]
    assert (await chats(services, "delete", ids=("0123", "01234"), yes=True)).notes == [
        "1 conversation deleted."
    ]


@pytest.mark.parametrize("action", ["show", "export", "delete"])
async def test_a_beginning_of_several_ids_names_none_of_them(
    services: FakeModelServices, home: Path, action: str
) -> None:
    await imported(services, home, "abcd1", "abcd2")
    with pytest.raises(HistoryError, match="2 conversations have an id that begins with abcd: gi"):
        await chats(services, action, ids=("abcd",), yes=True)
    assert await services.conversations.count() == 2


@pytest.mark.parametrize("given", ["", "a", "abc"])
async def test_too_few_letters_name_nothing(
    services: FakeModelServices, home: Path, given: str
) -> None:
    await imported(services, home, "abcd1")
    with pytest.raises(NotFound):
        await chats(services, "delete", ids=(given,), yes=True)


async def test_so_much_of_the_ids_is_listed_as_tells_them_apart(
    services: FakeModelServices, home: Path
) -> None:
    await imported(services, home, "conversation-1", "conversation-2", "c")
    out = (await chats(services, "list")).out + (await chats(services, "search", text="c")).out
    shown = [line.split()[0] for line in out.splitlines()]
    assert sorted(shown) == sorted(2 * ["conversation-1", "conversation-2", "c"])


async def test_a_conversation_is_shown(services: FakeModelServices) -> None:
    one = await say(services, "Hello")
    assert (await chats(services, "show", ids=(one,))).out == (
        "# Hello\n\n## You\nHello\n\n## Inglenook\nGood day 🙂\n"
    )
    shown = (await chats(services, "show", ids=(one,), json=True)).json()
    assert [each["content"] for each in shown["messages"]] == ["Hello", "Good day 🙂"]
    assert shown["messages"][1]["timings"]["completion_tokens"] == 13


async def test_names_of_files_are_shown_as_they_are(services: FakeModelServices) -> None:
    one = (await services.conversations.create()).conversation_id
    name = "/papers/\x1b[2Jle\u202ease\n.pdf"
    grounds = Grounds(
        is_found=True,
        quotations=(quotation(paths=(name,), page=3),),
        citations=(
            Citation(
                number=1, sentence=Span(0, 9), mark=Span(5, 8), verdict=Verdict.KEPT, written=1
            ),
        ),
    )
    turn = await services.conversations.begin_turn(one, "When?", grounds=grounds)
    said = replace(turn.answer, content="May. [1].", state=MessageState.DONE, grounds=grounds)
    await services.conversations.finish_answer(said)
    out = (await chats(services, "show", ids=(one,))).out
    assert out.endswith("\n[1: \ufffd[2Jle\ufffdase\ufffd.pdf, page 3]\n")


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
    assert console.notes == ["Taken in: 1 conversation, under new names: 0, here already: 0."]
    console = await chats(services, "import", file=str(file))
    assert console.notes == ["Taken in: 0 conversations, under new names: 0, here already: 1."]
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
    assert (await chats(services, "delete", ids=(one,), yes=True)).notes == [
        "1 conversation deleted."
    ]
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
