"""One turn: stored before it is asked, kept however it ends."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from app.chat.message import MessageState, Role
from app.chat.writing import Writing
from engine.errors import (
    EngineError,
    InvalidParams,
    ModelNotFound,
    NotFound,
    PromptTooLong,
    UsageError,
)
from engine.request import FinishReason
from tests.app.chat.room import Room
from tests.fakes_model import fake_chat_model
from tests.waiting import PATIENCE_S, until


async def begin(room: Room, text: str = "Hello") -> tuple[str, Writing, "asyncio.Task[None]"]:
    conversation = await room.conversations.create()
    writing = await room.session.plan_reply(conversation.conversation_id, text)
    return (
        conversation.conversation_id,
        writing,
        asyncio.create_task(room.session.reply(writing)),
    )


async def test_the_message_is_stored_before_the_engine_is_asked(room: Room) -> None:
    conversation = await room.conversations.create()
    await room.session.plan_reply(conversation.conversation_id, "Hello")
    user, answer = await room.stored(conversation.conversation_id)
    assert (user.role, user.content) == (Role.USER, "Hello")
    assert (answer.role, answer.state) == (Role.ASSISTANT, MessageState.STREAMING)
    assert room.engine.streams == []


async def test_a_finished_answer_is_stored_with_everything(room: Room) -> None:
    conversation_id, writing, task = await begin(room)
    stream = await room.stream()
    stream.read(3)
    stream.write("Good ")
    stream.end("day")
    await task
    (_, answer) = await room.stored(conversation_id)
    assert answer == writing.message
    assert (answer.content, answer.state) == ("Good day", MessageState.DONE)
    assert answer.token_ids == tuple(b"Good day")
    assert answer.model == "fake-model"
    assert answer.finish_reason == "stop"
    assert answer.timings["completion_tokens"] == 8
    assert answer.timings["prefilled_tokens"] == len(stream.prompt)


async def test_reading_progress_is_seen(room: Room) -> None:
    _, writing, task = await begin(room)
    stream = await room.stream()
    stream.read(5)
    await until(lambda: writing.answer.num_prompt_tokens_read == 5)
    assert writing.answer.num_prompt_tokens == len(stream.prompt)
    stream.end()
    await task


async def test_a_partial_answer_is_stored_while_it_is_written(room: Room) -> None:
    conversation_id, _, task = await begin(room)
    stream = await room.stream()
    stream.write("Once upon")

    async def content() -> str:
        return (await room.stored(conversation_id))[-1].content

    async with asyncio.timeout(PATIENCE_S):
        while await content() != "Once upon":
            await asyncio.sleep(0.005)
    stream.end()
    await task


async def test_a_prompt_that_does_not_fit_is_refused_with_counts_and_stores_nothing(
    room: Room,
) -> None:
    conversation = await room.conversations.create()
    with pytest.raises(PromptTooLong, match=r"needs [\d,]+ tokens and the context holds 4,096"):
        await room.session.plan_reply(conversation.conversation_id, "x" * 5000)
    assert await room.stored(conversation.conversation_id) == []
    assert (await room.conversations.get(conversation.conversation_id)).title == ""


async def test_an_empty_message_is_refused(room: Room) -> None:
    conversation = await room.conversations.create()
    with pytest.raises(UsageError, match="nothing to send"):
        await room.session.plan_reply(conversation.conversation_id, " \n")
    assert await room.stored(conversation.conversation_id) == []


async def test_without_a_model_nothing_is_stored(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_model() -> None:
        raise ModelNotFound("There is no model file.")

    monkeypatch.setattr(room, "model", no_model)
    conversation = await room.conversations.create()
    with pytest.raises(ModelNotFound):
        await room.session.plan_reply(conversation.conversation_id, "Hello")
    assert await room.stored(conversation.conversation_id) == []


async def test_choices_that_make_no_sense_are_refused_before_anything_is_stored(
    room: Room,
) -> None:
    conversation = await room.conversations.create(sampling={"temperature": 99.0})
    with pytest.raises(InvalidParams, match="temperature"):
        await room.session.plan_reply(conversation.conversation_id, "Hello")
    assert await room.stored(conversation.conversation_id) == []


async def test_the_conversations_choices_reach_the_engine(room: Room) -> None:
    conversation = await room.conversations.create(
        system_prompt="Speak like a pirate.", sampling={"temperature": 0.25}
    )
    writing = await room.session.plan_reply(conversation.conversation_id, "Hello")
    task = asyncio.create_task(room.session.reply(writing))
    stream = await room.stream()
    assert stream.params == replace(room.settings.sampling, temperature=0.25)
    tokenizer = room.chat_model.loaded.tokenizer
    assert b"pirate" in b"".join(map(tokenizer.token_bytes, stream.prompt))
    stream.end()
    await task


async def test_stopping_before_it_began_ends_it_at_once(room: Room) -> None:
    conversation = await room.conversations.create()
    writing = await room.session.plan_reply(conversation.conversation_id, "Hello")
    writing.stop()
    await room.session.reply(writing)
    (user, answer) = await room.stored(conversation.conversation_id)
    assert user.content == "Hello"
    assert (answer.content, answer.state) == ("", MessageState.STOPPED)
    assert answer.timings["finish"] == "abort"


async def test_stopping_while_the_prompt_is_read_keeps_the_message(room: Room) -> None:
    conversation_id, writing, task = await begin(room)
    (await room.stream()).read(2)
    writing.stop()
    await task
    (user, answer) = await room.stored(conversation_id)
    assert user.content == "Hello"
    assert (answer.content, answer.state) == ("", MessageState.STOPPED)
    assert answer.timings


async def test_stopping_while_it_is_written_keeps_the_text(room: Room) -> None:
    conversation_id, writing, task = await begin(room)
    (await room.stream()).write("Half of it")
    await until(lambda: writing.message.content)
    writing.stop()
    writing.stop()
    await task
    (_, answer) = await room.stored(conversation_id)
    assert (answer.content, answer.state) == ("Half of it", MessageState.STOPPED)
    assert answer.token_ids == tuple(b"Half of it")
    assert answer.timings["completion_tokens"] == 10


async def test_a_failure_is_stored_with_its_sentence_and_the_text_so_far(room: Room) -> None:
    conversation_id, _, task = await begin(room)
    stream = await room.stream()
    stream.write("Half")
    stream.fail(EngineError("The model could not compute this answer."))
    await task
    (_, answer) = await room.stored(conversation_id)
    assert (answer.content, answer.state) == ("Half", MessageState.FAILED)
    assert answer.notice == "The model could not compute this answer."


async def test_a_dead_engine_fails_the_answer_and_keeps_the_message(room: Room) -> None:
    room.engine.is_dead = True
    conversation_id, _, task = await begin(room)
    await task
    (user, answer) = await room.stored(conversation_id)
    assert user.content == "Hello"
    assert answer.state is MessageState.FAILED
    assert "restart" in answer.notice


async def test_a_cancelled_answer_is_stored_as_interrupted(room: Room) -> None:
    conversation_id, writing, task = await begin(room)
    stream = await room.stream()
    stream.write("Half")
    await until(lambda: writing.message.content)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (_, answer) = await room.stored(conversation_id)
    assert (answer.content, answer.state) == ("Half", MessageState.INTERRUPTED)
    assert stream.is_aborted


async def test_a_fault_of_ours_leaves_no_answer_open(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id, writing, task = await begin(room)
    monkeypatch.setattr(writing, "add", lambda output: 1 / 0)
    (await room.stream()).write("x")
    with pytest.raises(ZeroDivisionError):
        await task
    assert (await room.stored(conversation_id))[-1].state is MessageState.INTERRUPTED


async def test_a_full_disk_loses_no_partial_answer(room: Room) -> None:
    conversation_id, writing, task = await begin(room)
    stream = await room.stream()
    room.database.num_failures = 2
    for piece in ("one ", "two ", "three"):
        stream.write(piece)
    await until(lambda: writing.message.content == "one two three")
    stream.end()
    await task
    assert room.database.num_refused == 2
    (_, answer) = await room.stored(conversation_id)
    assert (answer.content, answer.notice) == ("one two three", "")


async def test_a_partial_answer_that_is_not_stored_says_so_while_it_is_written(room: Room) -> None:
    conversation_id, writing, task = await begin(room)
    stream = await room.stream()
    room.database.num_failures = 1_000_000
    stream.write("Half of it")
    await until(lambda: "not stored yet" in writing.answer.message.notice)
    assert writing.answer.message.state is MessageState.STREAMING
    assert "no room left" in writing.answer.message.notice
    room.database.num_failures = 0
    stream.write(" and more")
    await until(lambda: writing.answer.message.notice == "")
    stream.end()
    await task
    assert (await room.stored(conversation_id))[-1].notice == ""


async def test_a_finished_answer_is_stored_as_soon_as_there_is_room(room: Room) -> None:
    conversation_id, writing, task = await begin(room)
    stream = await room.stream()
    stream.write("All of it")
    await until(lambda: writing.message.content)
    room.database.num_failures = 1_000_000
    stream.end(notice="A loop was noticed.")
    await until(lambda: "not stored yet" in writing.message.notice)
    assert "no room left" in writing.message.notice
    assert writing.message.content == "All of it"
    assert not task.done()
    room.database.num_failures = 0
    await task
    assert writing.message.notice == "A loop was noticed."
    assert (await room.stored(conversation_id))[-1] == writing.message


async def test_closing_while_the_disk_is_full_tries_once_more(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.chat.session.RETRY_INTERVAL_S", 60.0)
    conversation_id, writing, task = await begin(room)
    room.database.num_failures = 1
    (await room.stream()).end("All of it")
    await until(lambda: "not stored yet" in writing.message.notice)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (_, answer) = await room.stored(conversation_id)
    assert (answer.content, answer.state, answer.notice) == ("All of it", MessageState.DONE, "")


async def test_cancelling_while_the_end_is_stored_stores_it(room: Room) -> None:
    for delay in range(8):
        conversation_id, writing, task = await begin(room)
        (await room.stream(count=delay + 1)).end("All of it")
        await until(lambda writing=writing: writing.is_over)
        for _ in range(delay):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        (_, answer) = await room.stored(conversation_id)
        assert (answer.content, answer.state) == ("All of it", MessageState.DONE)


async def test_a_conversation_deleted_meanwhile_ends_its_answer(room: Room) -> None:
    conversation_id, _, task = await begin(room)
    stream = await room.stream()
    await room.conversations.purge(conversation_id)
    stream.write("Nobody reads this")
    await asyncio.wait_for(task, 5)
    assert stream.is_aborted
    with pytest.raises(NotFound):
        await room.conversations.get(conversation_id)


async def test_a_conversation_deleted_before_the_end_is_no_reason_to_wait(room: Room) -> None:
    conversation_id, _, task = await begin(room)
    stream = await room.stream()
    await room.conversations.purge(conversation_id)
    stream.end()
    await asyncio.wait_for(task, 5)


async def test_thinking_is_kept_apart_from_the_answer(room: Room) -> None:
    conversation_id, writing, task = await begin(room)
    stream = await room.stream()
    for piece in ("<thi", "nk>", "Let me see.", "</think", ">\n\n", "Paris."):
        stream.write(piece)
    stream.end()
    await task
    (_, answer) = await room.stored(conversation_id)
    assert (answer.thinking, answer.content) == ("Let me see.", "Paris.")
    assert bytes(answer.token_ids) == b"<think>Let me see.</think>\n\nParis."


async def test_a_template_that_opens_thinking_starts_inside_it(room: Room) -> None:
    room.chat_model = fake_chat_model(room.engine, "deepseek_r1")
    conversation_id, _, task = await begin(room)
    stream = await room.stream()
    stream.write("Hm.</think>Paris.")
    stream.end()
    await task
    (_, answer) = await room.stored(conversation_id)
    assert (answer.thinking, answer.content) == ("Hm.", "Paris.")


async def test_an_answer_cut_by_its_length_is_done_and_says_why(room: Room) -> None:
    conversation_id, _, task = await begin(room)
    (await room.stream()).end("Long", FinishReason.LENGTH, "The context is full.")
    await task
    (_, answer) = await room.stored(conversation_id)
    assert (answer.state, answer.finish_reason) == (MessageState.DONE, "length")
    assert answer.notice == "The context is full."


async def test_the_next_prompt_goes_on_where_the_last_answer_ended(room: Room) -> None:
    conversation_id, _, task = await begin(room)
    first = await room.stream()
    # The bytes one by one: not how this tokenizer would spell the text itself.
    first.write("the answer")
    first.end()
    await task
    writing = await room.session.plan_reply(conversation_id, "And?")
    held = [*first.prompt, *b"the answer"]
    assert writing.question.prompt[: len(held)] == held


async def test_another_answer_reads_the_same_prompt(room: Room) -> None:
    conversation_id, _, task = await begin(room)
    first = await room.stream()
    first.end("One")
    await task
    writing = await room.session.plan_again(conversation_id)
    assert writing.question.prompt == first.prompt
    await asyncio.gather(room.session.reply(writing), end_next(room, "Two"))
    (user, answer) = await room.stored(conversation_id)
    assert (user.content, answer.content) == ("Hello", "Two")
    assert len(await room.conversations.siblings(answer.message_id)) == 2


async def end_next(room: Room, text: str) -> None:
    (await room.stream(count=2)).end(text)


async def test_there_must_be_something_to_answer_again(room: Room) -> None:
    conversation = await room.conversations.create()
    with pytest.raises(UsageError, match="nothing to answer again"):
        await room.session.plan_again(conversation.conversation_id)


async def test_a_message_stands_where_its_prompt_was_made_for(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another branch is shown while the prompt is made: the message does not move there."""
    conversation_id, _, task = await begin(room)
    (await room.stream()).end("One")
    await task
    one = (await room.stored(conversation_id))[-1]
    again = await room.session.plan_again(conversation_id)
    await asyncio.gather(room.session.reply(again), end_next(room, "Two"))
    two = (await room.stored(conversation_id))[-1]
    make = room.session._questions.of

    async def while_switching(*arguments: object) -> object:
        await room.conversations.set_active(conversation_id, one.message_id)
        return await make(*arguments)

    monkeypatch.setattr(room.session._questions, "of", while_switching)
    writing = await room.session.plan_reply(conversation_id, "Go on")
    path = await room.conversations.path(writing.message.message_id)
    assert [each.content for each in path] == ["Hello", two.content, "Go on", ""]
