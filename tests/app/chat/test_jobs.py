"""A job belongs to its conversation: whoever looks on, leaves or comes back changes nothing."""

import asyncio
from typing import Any

import pytest

from app.chat.jobs import STILL_ANSWERING, Job
from app.chat.message import MessageState
from app.chat.writing import Answer, Writing
from app.settings import Settings
from engine.errors import PromptTooLong, UsageError
from tests.app.chat.room import Room
from tests.waiting import until

FAST = 1000.0


async def new(room: Room) -> str:
    return (await room.conversations.create()).conversation_id


async def watch(job: Job, hz: float = FAST) -> list[Answer]:
    return [answer async for answer in job.follow(hz)]


async def test_a_message_is_answered(room: Room) -> None:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "Hello")
    assert room.jobs.get(conversation_id) is job
    assert room.jobs.num_running == 1
    (await room.stream()).end("Hi")
    answer = await job.finished()
    assert answer.message == (await room.stored(conversation_id))[-1]
    assert answer.message.content == "Hi"
    assert room.jobs.get(conversation_id) is None
    assert room.jobs.num_running == 0


async def test_two_messages_at_once_give_one_answer_and_one_refusal(room: Room) -> None:
    conversation_id = await new(room)
    results = await asyncio.gather(
        room.jobs.send(conversation_id, "First"),
        room.jobs.send(conversation_id, "Second"),
        room.jobs.regenerate(conversation_id),
        return_exceptions=True,
    )
    assert [str(each) for each in results[1:]] == [STILL_ANSWERING, STILL_ANSWERING]
    assert isinstance(results[0], Job)
    assert [each.content for each in await room.stored(conversation_id)] == ["First", ""]
    with pytest.raises(UsageError, match="still being answered"):
        await room.jobs.send(conversation_id, "Third")
    (await room.stream()).end("Hi")
    await results[0].finished()
    assert [each.content for each in await room.stored(conversation_id)] == ["First", "Hi"]


async def test_two_conversations_are_answered_at_once(room: Room) -> None:
    one, two = await new(room), await new(room)
    jobs = [await room.jobs.send(one, "One"), await room.jobs.send(two, "Two")]
    await room.stream(count=2)
    room.engine.streams[1].end("to two")
    room.engine.streams[0].end("to one")
    answers = [await job.finished() for job in jobs]
    assert [answer.message.content for answer in answers] == ["to one", "to two"]
    assert [answer.message.conversation_id for answer in answers] == [one, two]


async def test_a_refusal_leaves_the_place_free(room: Room) -> None:
    conversation_id = await new(room)
    with pytest.raises(PromptTooLong):
        await room.jobs.send(conversation_id, "x" * 5000)
    job = await room.jobs.send(conversation_id, "Hello")
    (await room.stream()).end()
    await job.finished()


async def test_stopping_keeps_what_was_written(room: Room) -> None:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "Hello")
    (await room.stream()).write("Half")
    await until(lambda: job.answer.message.content)
    room.jobs.stop(conversation_id)
    answer = await job.finished()
    assert (answer.message.content, answer.message.state) == ("Half", MessageState.STOPPED)
    room.jobs.stop(conversation_id)


async def test_stopping_while_the_model_still_loads_stops_the_answer(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = asyncio.Event()

    async def model() -> object:
        await loaded.wait()
        return room.chat_model

    monkeypatch.setattr(room, "model", model)
    conversation_id = await new(room)
    sending = asyncio.create_task(room.jobs.send(conversation_id, "Hello"))
    await until(lambda: room.jobs._starting)
    await asyncio.sleep(0.01)
    room.jobs.stop(conversation_id)
    loaded.set()
    answer = await (await sending).finished()
    assert answer.message.state is MessageState.STOPPED
    assert [each.content for each in await room.stored(conversation_id)] == ["Hello", ""]


async def test_a_page_that_goes_away_while_it_sends_leaves_no_answer_open(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has just been stored when the page goes: the answer is written all the same."""
    plan = room.session.plan_reply

    async def plan_and_lose_the_page(conversation_id: str, *message: Any) -> Writing:
        writing = await plan(conversation_id, *message)
        sending.cancel()
        await asyncio.sleep(0.01)
        return writing

    monkeypatch.setattr(room.session, "plan_reply", plan_and_lose_the_page)
    conversation_id = await new(room)
    sending = asyncio.create_task(room.jobs.send(conversation_id, "Hello"))
    with pytest.raises(asyncio.CancelledError):
        await sending
    (await room.stream()).end("Hi")
    await until(lambda: room.jobs.num_running == 0)
    assert [each.content for each in await room.stored(conversation_id)] == ["Hello", "Hi"]


async def test_a_follower_sees_now_first_and_the_stored_end_last(room: Room) -> None:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "Hello")
    stream = await room.stream()
    stream.write("One ")
    await until(lambda: job.answer.message.content)
    following = job.follow(FAST)
    first = await anext(following)
    assert first.message.content == "One "
    stream.write("two")
    second = await anext(following)
    assert second.message.content == "One two"
    stream.end(".")
    rest = [answer async for answer in following]
    assert rest[-1].message == (await room.stored(conversation_id))[-1]
    assert rest[-1].message.state is MessageState.DONE


async def test_a_follower_who_comes_after_the_end_sees_it_once(room: Room) -> None:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "Hello")
    (await room.stream()).end("Hi")
    await job.finished()
    assert [answer.message.content for answer in await watch(job)] == ["Hi"]


async def test_two_followers_see_the_same_end(room: Room) -> None:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "Hello")
    watching = [asyncio.create_task(watch(job)), asyncio.create_task(watch(job, 50.0))]
    stream = await room.stream()
    for piece in ("a", "b", "c"):
        stream.write(piece)
        await asyncio.sleep(0.01)
    stream.end()
    seen = [await each for each in watching]
    assert seen[0][-1] == seen[1][-1]
    assert seen[0][-1].message.content == "abc"


async def test_a_slow_follower_misses_moments_and_delays_nobody(room: Room) -> None:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "Hello")
    following = job.follow(FAST)
    await anext(following)
    stream = await room.stream()
    for piece in "abcdef":
        stream.write(piece)
    stream.end()
    await job.finished()
    rest = [answer.message.content async for answer in following]
    assert rest == ["abcdef"]


async def test_updates_come_at_most_as_often_as_asked(room: Room) -> None:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "Hello")
    watching = asyncio.create_task(watch(job, hz=2.0))
    stream = await room.stream()
    for _ in range(30):
        stream.write("x")
        await asyncio.sleep(0)
    stream.end()
    assert len(await watching) <= 3


async def test_nothing_goes_on_for_a_conversation_that_was_left_as_its_answer_ended(
    room: Room,
) -> None:
    room.settings = Settings(automatic_titles=False, reproducible=True)
    room.engine.is_busy = True
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "Hello")
    (await room.stream()).write("Hi, this is what I have to say.")
    await until(lambda: job.answer.message.content)
    async with asyncio.timeout(5):
        await room.jobs.leave(conversation_id)
    assert room.idle.num_running == 0
    assert all(each.is_over for each in room.engine.background)


async def test_a_follower_who_leaves_does_not_stop_the_job(room: Room) -> None:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "Hello")
    staying = asyncio.create_task(watch(job))
    leaving = job.follow(FAST)
    await anext(leaving)
    await leaving.aclose()
    waiting = asyncio.create_task(watch(job))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (await room.stream()).end("Still here")
    assert (await staying)[-1].message.content == "Still here"
    assert not room.engine.streams[0].is_aborted


async def test_whoever_saw_the_end_may_send_at_once(room: Room) -> None:
    conversation_id = await new(room)
    for turn in range(1, 6):
        job = await room.jobs.send(conversation_id, f"Message {turn}")
        (await room.stream(count=turn)).end("Hi")
        async for _ in job.follow(FAST):
            pass
    assert await room.conversations.num_messages(conversation_id) == 10


async def test_regenerating_gives_a_sibling(room: Room) -> None:
    conversation_id = await new(room)
    first = await room.jobs.send(conversation_id, "Hello")
    (await room.stream()).end("One")
    await first.finished()
    second = await room.jobs.regenerate(conversation_id)
    (await room.stream(count=2)).end("Two")
    answer = await second.finished()
    siblings = await room.conversations.siblings(answer.message.message_id)
    assert siblings == [first.answer.message.message_id, answer.message.message_id]


async def test_an_answer_that_cannot_be_stored_yet_keeps_its_place_and_says_why(
    room: Room,
) -> None:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "Hello")
    stream = await room.stream()
    room.database.num_failures = 1_000_000
    stream.end("Hi")
    following = job.follow(FAST)
    async for answer in following:
        if answer.message.notice:
            break
    assert "not stored yet" in answer.message.notice
    with pytest.raises(UsageError, match="no room left"):
        await room.jobs.send(conversation_id, "Next")
    room.database.num_failures = 0
    rest = [each async for each in following]
    assert rest[-1].message.notice == ""
    assert rest[-1].message == (await room.stored(conversation_id))[-1]


async def test_closing_keeps_every_answer_as_interrupted(room: Room) -> None:
    ids = [await new(room) for _ in range(3)]
    for conversation_id in ids:
        await room.jobs.send(conversation_id, "Hello")
    await room.stream(count=3)
    for stream in room.engine.streams:
        stream.write("Half")
    await until(lambda: all(room.jobs.get(each).answer.message.content for each in ids))
    await room.jobs.close()
    for conversation_id in ids:
        (_, answer) = await room.stored(conversation_id)
        assert (answer.content, answer.state) == ("Half", MessageState.INTERRUPTED)
    assert all(stream.is_aborted for stream in room.engine.streams)


async def test_closing_ends_what_has_not_begun(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(room, "model", never)
    conversation_id = await new(room)
    sending = asyncio.create_task(room.jobs.send(conversation_id, "Hello"))
    await until(lambda: room.jobs._starting)
    await asyncio.wait_for(room.jobs.close(), 5)
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert await room.stored(conversation_id) == []
