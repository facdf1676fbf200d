"""Temporary conversations behave like all others, and leave nothing behind."""

from pathlib import Path

import pytest

from app.chat.message import MessageState
from app.history.conversations import Conversations
from app.history.database import Database
from app.history.search import search
from app.history.transfer import export, import_
from engine.errors import NotFound
from tests.app.history.chats import Chats

SECRET = "xylophone"


def holding(folder: Path, word: str) -> list[str]:
    """The files in which the word stands."""
    return [
        file.name
        for file in folder.rglob("*")
        if file.is_file() and word.encode() in file.read_bytes()
    ]


async def test_a_temporary_chat_can_all_that_others_can(chats: Chats) -> None:
    made = await chats.create(temporary=True, system_prompt="Be brief.")
    chat = made.conversation_id
    turn = await chats.begin_turn(chat, SECRET)
    await chats.save_partial(turn.answer.message_id, "Ha", "")
    await chats.end(turn.answer, "Half")
    again = await chats.begin_answer(chat, turn.user.message_id)
    await chats.end(again, "Whole")
    texts = [each.content for each in await chats.messages(chat)]
    assert texts == [SECRET, "Whole"]
    assert await chats.num_messages(chat) == 2
    assert len(await chats.siblings(again.message_id)) == 2
    await chats.set_active(chat, turn.answer.message_id)
    assert (await chats.path(turn.answer.message_id))[-1].content == "Half"
    await chats.rename(chat, "Named")
    await chats.set_sampling(chat, {"temperature": 0.5})
    assert await chats.replace_title(chat, "Named", "Renamed")
    found = await chats.get(chat)
    assert (found.title, found.sampling) == ("Renamed", {"temperature": 0.5})


async def test_every_id_of_a_temporary_chat_tells(chats: Chats) -> None:
    made = await chats.create(temporary=True)
    turn = await chats.begin_turn(made.conversation_id, "Hello")
    for some_id in (made.conversation_id, turn.user.message_id, turn.answer.message_id):
        assert some_id.startswith("tmp-")
    lasting = await chats.create()
    assert not lasting.conversation_id.startswith("tmp-")


async def test_a_temporary_chat_is_listed_apart_and_found_by_no_search(
    chats: Chats, database: Database
) -> None:
    lasting = await chats.create("Lasting")
    made = await chats.create(SECRET, temporary=True)
    await chats.begin_turn(made.conversation_id, SECRET)
    assert await chats.list() == [lasting]
    temporary = [each.conversation_id for each in await chats.list_temporary()]
    assert temporary == [made.conversation_id]
    assert await chats.ids() == [lasting.conversation_id]
    assert await chats.count() == 1
    assert await search(database, SECRET) == []
    document = await export(database)
    assert [each["id"] for each in document["conversations"]] == [lasting.conversation_id]


async def test_no_file_ever_holds_a_word_of_it(chats: Chats, path: Path) -> None:
    made = await chats.create(SECRET, SECRET, temporary=True)
    for _ in range(3):
        turn = await chats.begin_turn(made.conversation_id, SECRET * 100)
        await chats.save_partial(turn.answer.message_id, SECRET * 100, SECRET)
        await chats.end(turn.answer, SECRET * 1000)
    assert holding(path.parent, SECRET) == []
    await chats.create(SECRET)
    assert holding(path.parent, SECRET), "the search would find it"


async def test_it_vanishes_with_the_process(path: Path) -> None:
    with Database(path) as database:
        conversations = Conversations(database)
        made = await conversations.create(temporary=True)
        conversations.close()
    with Database(path) as database:
        conversations = Conversations(database)
        with pytest.raises(NotFound):
            await conversations.get(made.conversation_id)
        conversations.close()


async def test_deleting_it_can_be_undone_while_it_lives(chats: Chats) -> None:
    made = await chats.create(temporary=True)
    await chats.delete(made.conversation_id)
    assert await chats.list_temporary() == []
    await chats.restore(made.conversation_id)
    await chats.purge(made.conversation_id)
    with pytest.raises(NotFound):
        await chats.restore(made.conversation_id)


@pytest.mark.parametrize("prefix", ["tmp-", "v1:"])
async def test_an_import_cannot_pass_for_something_else(
    chats: Chats, database: Database, prefix: str
) -> None:
    """Under such an id its KV would be treated as a temporary chat's or a program's."""
    message = {"id": f"{prefix}1", "role": "user", "content": "Hello", "created_at": 1.0}
    chat = {"id": f"{prefix}2", "title": "x", "created_at": 1.0, "messages": [message]}
    report = await import_(database, {"inglenook": 1, "conversations": [chat]})
    (taken,) = report.copied
    assert not taken.startswith(prefix)
    (stored,) = await chats.messages(taken)
    assert not stored.message_id.startswith(prefix)
    assert stored.state is MessageState.DONE


async def test_a_title_is_replaced_only_while_it_is_the_old_one(chats: Chats) -> None:
    made = await chats.create("Old")
    assert not await chats.replace_title(made.conversation_id, "Other", "New")
    assert (await chats.get(made.conversation_id)).title == "Old"
    assert await chats.replace_title(made.conversation_id, "Old", "New")
    assert (await chats.get(made.conversation_id)).title == "New"
    await chats.delete(made.conversation_id)
    assert not await chats.replace_title(made.conversation_id, "New", "Old")


async def test_whoever_listens_is_told_what_is_deleted(database: Database) -> None:
    told: list[str] = []
    conversations = Conversations(database, on_deleted=told.append)
    one = (await conversations.create()).conversation_id
    two = (await conversations.create(temporary=True)).conversation_id
    await conversations.delete(one)
    await conversations.restore(one)
    await conversations.purge(two)
    assert told == [one, two]
    with pytest.raises(NotFound):
        await conversations.delete("unknown")
    assert told == [one, two]
    conversations.close()
