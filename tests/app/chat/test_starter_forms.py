"""With the starter model: whole answers have their form, at a temperature at which it babbles."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.chat.answer_form import AnswerForm, Outcome
from app.chat.chat_model import ChatModel, load_chat_model
from app.chat.fields import Field, FieldKind, Fields
from app.chat.session import ChatSession
from app.history.conversations import Conversations
from app.history.database import Database
from app.settings import Settings
from app.ui.shape import Record, shape_of
from engine.config import EngineConfig
from engine.guided.grammar import GrammarKind
from grammars.catalog import ready_forms

pytestmark = pytest.mark.model

PERSON = AnswerForm.of_own(
    GrammarKind.JSON_SCHEMA,
    Fields(
        (
            Field(name="name", meaning="of the person"),
            Field(name="age", kind=FieldKind.WHOLE_NUMBER),
            Field(name="born", kind=FieldKind.DATE),
            Field(name="mood", kind=FieldKind.ONE_OF, choices=("glad", "sad")),
        )
    ).source(),
)
DATE = AnswerForm.of_ready(ready_forms()["date"])
UNIQUE = AnswerForm.of_own(
    GrammarKind.JSON_SCHEMA,
    '{"type": "array", "items": {"type": "boolean"}, "uniqueItems": true, "maxItems": 3}',
    is_approximate=True,
)


@pytest.fixture
async def room(home: Path, starter: Path) -> AsyncIterator[tuple[Conversations, ChatSession]]:
    model = load_chat_model(EngineConfig(model_path=starter, context_tokens=1024))

    async def loaded() -> ChatModel:
        return model

    settings = Settings(default_sampling={"temperature": 1.5, "max_tokens": 120})
    with Database(home / "history.sqlite3") as database:
        conversations = Conversations(database)
        yield conversations, ChatSession(conversations, loaded, lambda: settings)
    model.close()


async def outcomes(
    room: tuple[Conversations, ChatSession], form: AnswerForm
) -> list[tuple[Outcome | None, str]]:
    """Of three answers to one message."""
    conversations, session = room
    made = await conversations.create(answer_form=form)
    writing = await session.plan_reply(made.conversation_id, "Tell me of somebody you like.")
    await session.reply(writing)
    found = [(writing.message.outcome, writing.message.content)]
    for _ in range(2):
        writing = await session.plan_again(made.conversation_id)
        await session.reply(writing)
        found.append((writing.message.outcome, writing.message.content))
    return found


async def test_every_whole_answer_has_its_form(room: tuple[Conversations, ChatSession]) -> None:
    for outcome, text in await outcomes(room, PERSON):
        if outcome is Outcome.WHOLE:
            person = json.loads(text)
            assert list(person) == ["name", "age", "born", "mood"]
            assert isinstance(person["age"], int) and person["mood"] in ("glad", "sad")
        assert outcome in (Outcome.WHOLE, Outcome.CUT)
        assert isinstance(shape_of(text, PERSON.medium), Record)
    for outcome, text in await outcomes(room, DATE):
        assert outcome is Outcome.WHOLE
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", text)


async def test_what_is_checked_afterwards_is_marked_as_it_is(
    room: tuple[Conversations, ChatSession],
) -> None:
    for outcome, text in await outcomes(room, UNIQUE):
        if outcome is not Outcome.CUT:
            values = json.loads(text)
            is_valid = len(set(values)) == len(values)
            assert outcome is (Outcome.VALID if is_valid else Outcome.INVALID)
