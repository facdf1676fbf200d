"""The documents of a conversation, and the passages of its answers, in the history."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.chat.message import MessageState
from app.documents.citation import Citation, Span, Verdict
from app.documents.grounds import Grounds
from app.documents.scope import WHOLE_LIBRARY, Scope
from app.history.conversations import Conversations
from app.history.database import HISTORY, Database
from app.history.migrations import MIGRATIONS
from app.history.transfer import export, import_
from engine.errors import HistoryError
from tests.app.documents.test_grounds import quotation
from tests.app.history.chats import Chats

GROUNDS = Grounds(
    scope=Scope(paths=("/papers",)),
    searched="Where does the Inn rise?",
    num_documents=2,
    is_found=True,
    quotations=(quotation(text="It rises in Switzerland, nowhere else."),),
    fence="7f3a",
)
CITED = replace(
    GROUNDS,
    citations=(
        Citation(
            number=1, sentence=Span(0, 15), mark=Span(11, 14), verdict=Verdict.KEPT, written=1
        ),
    ),
)


@pytest.fixture
async def chats(path: Path) -> AsyncIterator[Chats]:
    with Database(path) as database:
        yield Chats(database)


async def answered(chats: Conversations) -> str:
    made = await chats.create(documents=WHOLE_LIBRARY)
    turn = await chats.begin_turn(made.conversation_id, "Where?", grounds=GROUNDS)
    ended = replace(turn.answer, content="In the Alps[1].", state=MessageState.DONE, grounds=CITED)
    await chats.finish_answer(ended)
    return made.conversation_id


async def test_a_conversation_asks_no_files_until_some_are_chosen(chats: Chats) -> None:
    made = await chats.create()
    assert made.documents is None
    for chosen in (WHOLE_LIBRARY, Scope(collections=("work",)), Scope(paths=("/a", "/b")), None):
        await chats.set_documents(made.conversation_id, chosen)
        assert (await chats.get(made.conversation_id)).documents == chosen


async def test_passages_are_stored_before_anything_is_written(chats: Chats) -> None:
    made = await chats.create()
    turn = await chats.begin_turn(made.conversation_id, "Where?", grounds=GROUNDS)
    await chats.save_partial(turn.answer.message_id, "In", "")
    (user, answer) = await chats.messages(made.conversation_id)
    assert (user.grounds, answer.grounds) == (None, GROUNDS)
    again = await chats.interrupt_stale()
    assert again == 1 and (await chats.messages(made.conversation_id))[1].grounds == GROUNDS
    other = await chats.begin_answer(made.conversation_id, user.message_id, grounds=CITED)
    assert other.grounds == CITED


async def test_citations_are_there_after_a_restart(path: Path) -> None:
    with Database(path) as database:
        conversation_id = await answered(Chats(database))
    with Database(path) as database:
        (_, answer) = await Chats(database).messages(conversation_id)
        assert answer.grounds == CITED


async def test_an_export_carries_passages_and_citations(chats: Chats, tmp_path: Path) -> None:
    await answered(chats)
    document = await export(chats._stores.lasting)
    with Database(tmp_path / "other.sqlite3") as other:
        await import_(other, document)
        assert (await export(other))["conversations"] == document["conversations"]
        (conversation,) = await Conversations(other).list()
        assert conversation.documents == WHOLE_LIBRARY


async def test_a_citation_that_fits_no_answer_is_not_taken_in(chats: Chats) -> None:
    await answered(chats)
    document = await export(chats._stores.lasting)
    document["conversations"][0]["messages"][1]["content"] = "Short"
    with pytest.raises(HistoryError, match="behind the end"):
        await import_(chats._stores.lasting, document)


async def test_a_purged_conversation_leaves_no_word_of_its_passages(path: Path) -> None:
    with Database(path) as database:
        chats = Chats(database)
        conversation_id = await answered(chats)
        assert b"nowhere else" in _bytes(path)
        await chats.purge(conversation_id)
        assert b"nowhere else" not in _bytes(path)


def _bytes(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))


async def test_a_history_of_the_seventh_version_asked_no_files(path: Path) -> None:
    with Database(path, replace(HISTORY, steps=MIGRATIONS[:7])) as database:
        database.run_sync(
            lambda db: db.execute(
                "insert into conversation(id, title, created_at, updated_at, system_prompt,"
                " sampling) values ('c', '', 0, 0, '', '{}')"
            )
        )
    with Database(path) as database:
        assert (await Conversations(database).get("c")).documents is None
