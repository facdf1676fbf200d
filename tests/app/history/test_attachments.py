"""Pictures and sounds in the history: with their message for as long as it is, and no longer."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.chat.message import MessageState
from app.history.database import Database
from app.history.transfer import export, import_
from app.media.attachment import Attachment
from engine.errors import HistoryError, NotFound
from engine.media import MediaKind
from tests.app.history.chats import Chats

CONTENT = b"\x89PNG a secret picture" * 400


def attachment(content: bytes = CONTENT, name: str = "cat.png") -> Attachment:
    import hashlib

    return Attachment(
        kind=MediaKind.IMAGE,
        name=name,
        media_type="image/png",
        width=40,
        height=30,
        digest=hashlib.sha256(content).hexdigest(),
        preview=b"a small one",
        read=lambda: content,
    )


async def told(chats: Chats, *attachments: Attachment, temporary: bool = False) -> str:
    made = await chats.create(temporary=temporary)
    turn = await chats.begin_turn(made.conversation_id, "What?", attachments=attachments)
    await chats.finish_answer(replace(turn.answer, content="A cat.", state=MessageState.DONE))
    return made.conversation_id


async def test_a_message_comes_back_with_what_was_sent_with_it(path: Path) -> None:
    sent = (attachment(), attachment(b"another", "dog.png"))
    with Database(path) as database:
        conversation_id = await told(Chats(database), *sent)
    with Database(path) as database:
        chats = Chats(database)
        for messages in (
            await chats.messages(conversation_id),
            await chats.path((await chats.messages(conversation_id))[-1].message_id),
        ):
            question, answer = messages
            assert question.attachments == sent and answer.attachments == ()
            assert [each.read() for each in question.attachments] == [CONTENT, b"another"]


async def test_a_temporary_picture_never_reaches_the_disk(path: Path) -> None:
    with Database(path) as database:
        chats = Chats(database)
        conversation_id = await told(chats, attachment(), temporary=True)
        (question, _) = await chats.messages(conversation_id)
        assert question.attachments[0].read() == CONTENT
        chats.close()
    assert not any(CONTENT in file.read_bytes() for file in path.parent.iterdir())


async def test_a_picture_goes_with_its_conversation_from_every_file(path: Path) -> None:
    with Database(path) as database:
        chats = Chats(database)
        conversation_id = await told(chats, attachment())
        other = await told(chats, attachment(b"another", "dog.png"))
        (question, _) = await chats.messages(conversation_id)
        await chats.delete(conversation_id)
        await chats.restore(conversation_id)
        assert question.attachments[0].read() == CONTENT
        await chats.purge(conversation_id)
        with pytest.raises(NotFound, match="picture is gone"):
            question.attachments[0].read()
        assert (await chats.messages(other))[0].attachments[0].read() == b"another"
    held = [file.read_bytes() for file in path.parent.iterdir() if file.is_file()]
    assert not any(b"a secret picture" in content for content in held)


async def test_an_export_takes_pictures_along_and_an_import_brings_them_back(
    path: Path, tmp_path: Path
) -> None:
    with Database(path) as database:
        conversation_id = await told(Chats(database), attachment())
        document = json.loads(json.dumps(await export(database)))
        report = await import_(database, document)
        assert report.skipped == (conversation_id,)
    with Database(tmp_path / "other.sqlite3") as database:
        report = await import_(database, document)
        assert report.imported == (conversation_id,)
        (question, _) = await Chats(database).messages(conversation_id)
        assert question.attachments == (attachment(),)
        assert question.attachments[0].read() == CONTENT
        # Another picture under the same ids is another conversation.
        shown = document["conversations"][0]["messages"][0]["attachments"][0]
        shown["content"] = "QUJD"
        report = await import_(database, document)
        (copied,) = report.copied
        (question, _) = await Chats(database).messages(copied)
        assert question.attachments[0].read() == b"ABC"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "video"},
        {"media_type": "text/html"},
        {"width": 0},
        {"width": "40"},
        {"height": 10**9},
        {"content": ""},
        {"content": "no base64!"},
        {"preview": 7},
        {"name": None},
    ],
    ids=str,
)
async def test_what_is_no_picture_of_ours_is_not_taken_in(
    path: Path, change: dict[str, object]
) -> None:
    with Database(path) as database:
        conversation_id = await told(Chats(database), attachment())
        document = await export(database)
        document["conversations"][0]["messages"][0]["attachments"][0] |= change
        with pytest.raises(HistoryError, match="`attachments` of message 1"):
            await import_(database, document)
        document["conversations"][0]["messages"][0]["attachments"] = 7
        with pytest.raises(HistoryError, match="not a list"):
            await import_(database, document)
        assert (await Chats(database).messages(conversation_id))[0].attachments


async def test_a_message_without_words_names_its_conversation_by_its_pictures(path: Path) -> None:
    with Database(path) as database:
        chats = Chats(database)
        made = await chats.create()
        await chats.begin_turn(made.conversation_id, "", attachments=[attachment()])
        assert (await chats.get(made.conversation_id)).title == "cat.png"
