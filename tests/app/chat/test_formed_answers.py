"""A turn whose answer has a form: stored with it, kept to it, checked, and kept however it ends."""

import asyncio
import itertools

import pytest

from app.chat import guided
from app.chat.answer_form import AnswerForm, MadeIn, Outcome
from app.chat.draft import NEWEST, Draft
from app.chat.message import MessageState
from app.chat.sight import Sights
from app.chat.wishes import TEXT_AGAIN, in_words
from app.chat.writing import Writing
from engine.guided.answer import Guidance
from engine.guided.grammar import Grammar, GrammarKind
from engine.request import FinishReason
from grammars.catalog import ready_forms
from tests.app.chat.room import Room
from tests.fakes_model import FakeStream
from tests.waiting import until

CSV = AnswerForm.of_ready(ready_forms()["csv"])
NUMBER = AnswerForm.of_own(GrammarKind.REGEX, "[0-9]+")
UNIQUE = AnswerForm.of_own(
    GrammarKind.JSON_SCHEMA,
    '{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}',
    is_approximate=True,
)


async def begin(room: Room, form: AnswerForm | None) -> tuple[str, Writing, "asyncio.Task[None]"]:
    made = await room.conversations.create(answer_form=form)
    writing = await room.session.plan_reply(made.conversation_id, "Hello")
    return made.conversation_id, writing, asyncio.create_task(room.session.reply(writing))


def grammar_of(stream: FakeStream) -> Grammar | None:
    guidance: Guidance | None = stream.guidance
    return None if guidance is None else guidance.grammar.grammar


async def test_the_form_is_stored_with_the_answer_before_anything_is_computed(room: Room) -> None:
    made = await room.conversations.create(answer_form=CSV)
    await room.session.plan_reply(made.conversation_id, "Hello")
    _, answer = await room.stored(made.conversation_id)
    assert (answer.made_in, answer.state) == (MadeIn(CSV), MessageState.STREAMING)
    assert room.engine.streams == []


async def test_the_engine_keeps_the_answer_to_the_form(room: Room) -> None:
    conversation_id, _, task = await begin(room, CSV)
    stream = await room.stream()
    assert grammar_of(stream) == CSV.grammar
    stream.end("a,b\n1,2")
    await task
    _, answer = await room.stored(conversation_id)
    assert (answer.content, answer.outcome) == ("a,b\n1,2", Outcome.WHOLE)


async def test_the_model_is_told_the_form(room: Room) -> None:
    _, _, task = await begin(room, CSV)
    stream = await room.stream()
    tokenizer = room.chat_model.loaded.tokenizer
    assert b"CSV with a header" in b"".join(map(tokenizer.token_bytes, stream.prompt))
    stream.end()
    await task


async def test_choosing_a_form_changes_nothing_that_was_read(room: Room) -> None:
    conversation_id, _, task = await begin(room, None)
    (await room.stream()).end("Good day")
    await task
    prompts = []
    for number, form in enumerate((CSV, CSV, NUMBER, None), start=2):
        await room.conversations.set_answer_form(conversation_id, form)
        writing = await room.session.plan_reply(conversation_id, f"Message {number}")
        task = asyncio.create_task(room.session.reply(writing))
        stream = await room.stream(count=number)
        stream.end("7")
        await task
        prompts.append(stream.prompt)
    for before, after in itertools.pairwise(prompts):
        # All but what asks for an answer.
        assert after[: len(before)] == before
    tokenizer = room.chat_model.loaded.tokenizer
    whole = b"".join(map(tokenizer.token_bytes, prompts[-1])).decode()
    assert whole.count("CSV with a header") == 1
    assert whole.count("regular expression") == 1
    assert whole.count(TEXT_AGAIN) == 1
    assert (await room.conversations.get(conversation_id)).title == "Hello"
    assert [each.content for each in await room.stored(conversation_id)][2] == "Message 2"


async def test_what_is_left_out_takes_no_wish_along(room: Room) -> None:
    conversation_id, _, task = await begin(room, CSV)
    (await room.stream()).end("a,b\n1,2")
    await task
    path = await room.stored(conversation_id)
    conversation = await room.conversations.get(conversation_id)
    draft = Draft(room.chat_model, conversation, path, "And now?")
    whole, newest = draft.turns(), draft.turns(NEWEST)
    assert [turn.wish for turn in whole] == [in_words(CSV), "", ""]
    assert [turn.wish for turn in newest] == [in_words(CSV)]


async def test_an_answer_that_is_cut_says_so(room: Room) -> None:
    conversation_id, _, task = await begin(room, CSV)
    (await room.stream()).end("a,", FinishReason.GRAMMAR_INCOMPLETE, "It was cut off.")
    await task
    _, answer = await room.stored(conversation_id)
    assert (answer.state, answer.outcome) == (MessageState.DONE, Outcome.CUT)
    assert answer.notice == "It was cut off."


async def test_another_answer_has_the_form_that_is_chosen_now(room: Room) -> None:
    conversation_id, _, task = await begin(room, CSV)
    (await room.stream()).end("a,b\n1,2")
    await task
    for number, form in enumerate((NUMBER, None), start=2):
        await room.conversations.set_answer_form(conversation_id, form)
        writing = await room.session.plan_again(conversation_id)
        task = asyncio.create_task(room.session.reply(writing))
        stream = await room.stream(count=number)
        assert grammar_of(stream) == (form.grammar if form else None)
        stream.end("7")
        await task
    _, answer = await room.stored(conversation_id)
    first, second, third = await room.conversations.siblings(answer.message_id)
    forms = [(await room.conversations.path(each))[-1].made_in for each in (first, second, third)]
    assert forms == [MadeIn(CSV), MadeIn(NUMBER), None]


async def test_a_form_that_cannot_be_read_ends_in_a_sentence_beside_the_message(
    room: Room,
) -> None:
    broken = AnswerForm.of_own(GrammarKind.LARK, "start: nowhere")
    conversation_id, _, task = await begin(room, broken)
    await task
    user, answer = await room.stored(conversation_id)
    assert (user.content, answer.state) == ("Hello", MessageState.FAILED)
    assert "unknown name" in answer.notice
    assert room.engine.streams == []
    # Nothing is in the way of another try.
    await room.conversations.set_answer_form(conversation_id, None)
    again = asyncio.create_task(room.session.reply(await room.session.plan_again(conversation_id)))
    (await room.stream()).end("Good day")
    await again
    assert (await room.stored(conversation_id))[-1].content == "Good day"


async def test_what_cannot_be_enforced_is_checked_and_said(room: Room) -> None:
    conversation_id, _, task = await begin(room, UNIQUE)
    (await room.stream()).end("[1, 2]")
    await task
    _, answer = await room.stored(conversation_id)
    assert (answer.made_in, answer.outcome) == (MadeIn(UNIQUE, True), Outcome.VALID)


async def test_an_answer_that_is_wrong_is_asked_for_again(room: Room) -> None:
    conversation_id, writing, task = await begin(room, UNIQUE)
    (await room.stream()).end("[1, 1]")
    second = await room.stream(count=2)
    assert "asking again, 2 of 3" in writing.answer.doing
    assert (writing.message.content, writing.is_over) == ("", False)
    first = room.engine.streams[0]
    assert second.prompt == first.prompt
    assert second.params.temperature >= guided.LEAST_TEMPERATURE
    second.end("[1, 2]")
    await task
    _, answer = await room.stored(conversation_id)
    assert (answer.content, answer.outcome) == ("[1, 2]", Outcome.VALID)
    assert answer.token_ids == tuple(b"[1, 2]")


async def test_after_the_last_try_the_answer_is_marked_with_what_is_wrong(room: Room) -> None:
    conversation_id, _, task = await begin(room, UNIQUE)
    for number in range(1, guided.MOST_TRIES + 1):
        (await room.stream(count=number)).end(f"[{number}, {number}]")
    await task
    _, answer = await room.stored(conversation_id)
    assert answer.content == "[3, 3]"
    assert answer.outcome is Outcome.INVALID
    assert answer.made_in is not None and "non-unique" in answer.made_in.fault


async def test_a_fault_with_half_a_character_can_be_stored(room: Room) -> None:
    texts = AnswerForm.of_own(
        GrammarKind.JSON_SCHEMA, '{"type": "array", "uniqueItems": true}', is_approximate=True
    )
    conversation_id, _, task = await begin(room, texts)
    for number in range(1, guided.MOST_TRIES + 1):
        (await room.stream(count=number)).end(r'["\ud800", "\ud800"]')
    await task
    _, answer = await room.stored(conversation_id)
    assert answer.made_in is not None
    assert answer.made_in.fault.encode()


async def test_stopping_asks_for_no_other_try(room: Room) -> None:
    conversation_id, writing, task = await begin(room, UNIQUE)
    (await room.stream()).write("[1, 1")
    await until(lambda: writing.message.content)
    writing.stop()
    await task
    _, answer = await room.stored(conversation_id)
    assert (answer.content, answer.outcome) == ("[1, 1", Outcome.CUT)
    assert len(room.engine.streams) == 1


async def test_stopping_between_two_tries_keeps_the_first(room: Room) -> None:
    conversation_id, writing, task = await begin(room, UNIQUE)
    stream = await room.stream()
    stream.end("[1, 1]")
    writing.stop()
    await task
    _, answer = await room.stored(conversation_id)
    assert (answer.content, answer.outcome) == ("[1, 1]", Outcome.INVALID)
    assert len(room.engine.streams) == 1


async def test_thinking_stays_out_of_what_is_checked(room: Room) -> None:
    conversation_id, _, task = await begin(room, UNIQUE)
    (await room.stream()).end("<think>1, 1?</think>[1]")
    await task
    _, answer = await room.stored(conversation_id)
    assert (answer.thinking, answer.content) == ("1, 1?", "[1]")
    assert answer.outcome is Outcome.VALID


async def test_a_restart_leaves_the_form_of_a_cut_answer(room: Room) -> None:
    conversation_id, writing, task = await begin(room, CSV)
    (await room.stream()).write("a,b")
    await until(lambda: writing.message.content)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    _, answer = await room.stored(conversation_id)
    assert (answer.state, answer.outcome) == (MessageState.INTERRUPTED, Outcome.CUT)
    assert answer.made_in == MadeIn(CSV)


async def test_what_the_model_saw_is_built_with_the_form_of_that_answer(room: Room) -> None:
    conversation_id, _, task = await begin(room, CSV)
    (await room.stream()).end("a,b\n1,2")
    await task
    await room.conversations.set_answer_form(conversation_id, NUMBER)
    sights = Sights(room.conversations, lambda: room.chat_model, lambda: room.settings)
    sight = await sights.saw((await room.stored(conversation_id))[-1].message_id)
    assert sight.doubt == ""
    assert "CSV with a header" in "".join(each.text for each in sight.stretches)


async def test_a_temporary_conversation_has_a_form_too(room: Room) -> None:
    made = await room.conversations.create(temporary=True)
    await room.conversations.set_answer_form(made.conversation_id, NUMBER)
    assert (await room.conversations.get(made.conversation_id)).answer_form == NUMBER
    writing = await room.session.plan_reply(made.conversation_id, "Hello")
    task = asyncio.create_task(room.session.reply(writing))
    (await room.stream()).end("7")
    await task
    assert (await room.stored(made.conversation_id))[-1].made_in == MadeIn(NUMBER)
