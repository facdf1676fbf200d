"""A conversation that outgrows the context: asked about, cut or summed up, never silently."""

import asyncio
from dataclasses import replace

import pytest

from app.chat.context import DoesNotFit
from app.chat.draft import SUMMARY_LEAD
from app.chat.message import Message, MessageState, Overflow
from app.chat.prompts import prompt_digest
from engine.errors import EngineError, PromptTooLong
from tests.app.chat.room import Room
from tests.fakes_model import FakeStream

TURN = "x" * 190
"""With the marks around it and the answer below, about 220 tokens."""


@pytest.fixture
def room(room: Room) -> Room:
    """One of 2,000 tokens, 1,800 of them for a prompt."""
    room.engine.max_request_tokens = 2000
    room.settings = replace(room.settings, default_sampling={"max_tokens": 200})
    return room


async def talk(room: Room, conversation_id: str, text: str, answer: str = "Yes.") -> FakeStream:
    """A whole turn; the request that the engine got."""
    writing = await room.session.plan_reply(conversation_id, text)
    return await finish(room, writing, answer)


async def finish(room: Room, writing, answer: str = "Yes.") -> FakeStream:  # type: ignore[no-untyped-def]
    num_before = len(room.engine.streams)
    task = asyncio.create_task(room.session.reply(writing))
    stream = await room.stream(count=num_before + 1)
    stream.end(answer)
    await task
    return stream


async def full(room: Room, choice: Overflow = Overflow.ASK) -> str:
    """A conversation in which the next turn does not fit."""
    conversation_id = (await room.conversations.create(system_prompt="Be kind.")).conversation_id
    for number in range(8):
        await talk(room, conversation_id, f"{number}{TURN}")
    await room.conversations.set_overflow(conversation_id, choice)
    return conversation_id


def text_of(room: Room, stream: FakeStream) -> str:
    tokenizer = room.chat_model.loaded.tokenizer
    return b"".join(map(tokenizer.token_bytes, stream.prompt)).decode()


async def answers(room: Room, conversation_id: str) -> list[Message]:
    return (await room.stored(conversation_id))[1::2]


async def test_an_answer_stores_the_digest_of_what_it_was_made_from(room: Room) -> None:
    conversation_id = (await room.conversations.create()).conversation_id
    stream = await talk(room, conversation_id, "Hello")
    (answer,) = await answers(room, conversation_id)
    assert answer.seen.digest == prompt_digest(stream.prompt)
    assert answer.seen.num_tokens == len(stream.prompt)
    assert (answer.seen.first_id, answer.seen.summary) == ("", "")


async def test_before_anything_is_lost_the_user_is_asked(room: Room) -> None:
    conversation_id = await full(room)
    before = await room.stored(conversation_id)
    with pytest.raises(DoesNotFit) as asked:
        await room.session.plan_reply(conversation_id, f"8{TURN}")
    outlook = asked.value.outlook
    assert outlook.num_tokens > outlook.limit == 1800
    assert (outlook.num_left_out, outlook.num_summed_up) == (4, 6)
    assert 750 < outlook.num_tokens_left_out < 900
    assert str(asked.value).startswith(f"This conversation needs {outlook.num_tokens:,} tokens")
    assert await room.stored(conversation_id) == before
    assert len(room.engine.streams) == 8


async def test_a_larger_context_is_proposed_if_the_model_was_made_for_it(room: Room) -> None:
    conversation_id = await full(room)
    with pytest.raises(DoesNotFit) as asked:
        await room.session.plan_reply(conversation_id, f"8{TURN}")
    # The fake model's info says that it was trained for 4,096.
    assert asked.value.outlook.larger == 4000


async def test_the_oldest_turns_are_left_out_and_the_system_prompt_stays(room: Room) -> None:
    conversation_id = await full(room, Overflow.DROP)
    stream = await talk(room, conversation_id, f"8{TURN}")
    sent = text_of(room, stream)
    assert "Be kind." in sent
    assert [number for number in range(9) if f"{number}xxx" in sent] == [4, 5, 6, 7, 8]
    assert len(stream.prompt) <= 1080


async def test_between_two_cuts_every_prompt_begins_with_the_one_before(room: Room) -> None:
    conversation_id = await full(room, Overflow.DROP)
    streams = [await talk(room, conversation_id, f"turn {number} {TURN}") for number in range(30)]
    cuts = 0
    for earlier, later in zip(streams, streams[1:], strict=False):
        assert len(later.prompt) <= 1800
        if later.prompt[: len(earlier.prompt)] != earlier.prompt:
            cuts += 1
    firsts = {answer.seen.first_id for answer in await answers(room, conversation_id)}
    assert 4 <= cuts <= 10
    assert len(firsts) == cuts + 2


async def test_another_answer_to_a_message_has_the_same_cut(room: Room) -> None:
    conversation_id = await full(room, Overflow.DROP)
    first = await talk(room, conversation_id, f"8{TURN}")
    again = await finish(room, await room.session.plan_again(conversation_id))
    assert again.prompt == first.prompt


async def test_with_a_larger_context_everything_is_sent_again(room: Room) -> None:
    conversation_id = await full(room, Overflow.DROP)
    await talk(room, conversation_id, f"8{TURN}")
    room.engine.max_request_tokens = 8000
    stream = await talk(room, conversation_id, "And now?")
    assert "0xxx" in text_of(room, stream)
    assert (await answers(room, conversation_id))[-1].seen.first_id == ""


async def test_a_message_that_fits_nowhere_is_refused_whatever_was_chosen(room: Room) -> None:
    for choice in Overflow:
        conversation_id = await full(room, choice)
        with pytest.raises(PromptTooLong, match="the context holds 2,000") as refused:
            await room.session.plan_reply(conversation_id, "x" * 2400)
        assert not isinstance(refused.value, DoesNotFit)


async def test_a_first_message_may_take_the_room_of_the_answer(room: Room) -> None:
    conversation_id = (await room.conversations.create()).conversation_id
    stream = await talk(room, conversation_id, "x" * 1850)
    assert 1800 < len(stream.prompt) < 2000


async def test_a_message_that_leaves_room_for_nothing_else_is_sent_alone(room: Room) -> None:
    conversation_id = await full(room, Overflow.DROP)
    stream = await talk(room, conversation_id, "y" * 1700)
    assert "xxx" not in text_of(room, stream)
    answer = (await answers(room, conversation_id))[-1]
    assert answer.seen.first_id == answer.parent_id


async def summed_up(room: Room, conversation_id: str, text: str) -> tuple[FakeStream, FakeStream]:
    """The request for the summary, and that of the answer."""
    writing = await room.session.plan_reply(conversation_id, text)
    num_before = len(room.engine.streams)
    task = asyncio.create_task(room.session.reply(writing))
    summary = await room.stream(count=num_before + 1)
    summary.end("They like cats.")
    answer = await room.stream(count=num_before + 2)
    answer.end("Yes.")
    await task
    return summary, answer


async def test_a_summary_stands_for_what_is_left_out(room: Room) -> None:
    conversation_id = await full(room, Overflow.SUMMARISE)
    summary, answer = await summed_up(room, conversation_id, f"8{TURN}")
    assert "sum up our conversation" in text_of(room, summary)
    assert f"{SUMMARY_LEAD}They like cats." in text_of(room, answer)
    assert "0xxx" not in text_of(room, answer)
    assert "8xxx" in text_of(room, answer)
    stored = (await answers(room, conversation_id))[-1]
    assert stored.seen.summary == "They like cats."
    assert stored.seen.digest == prompt_digest(answer.prompt)


async def test_the_request_for_a_summary_begins_with_what_was_read_before(room: Room) -> None:
    conversation_id = await full(room, Overflow.SUMMARISE)
    last = room.engine.streams[-1].prompt
    summary, _ = await summed_up(room, conversation_id, f"8{TURN}")
    same = next(
        place
        for place, pair in enumerate(zip(summary.prompt, last, strict=False))
        if pair[0] != pair[1]
    )
    assert same > 0.7 * len(last)


async def test_a_summary_is_sent_with_every_later_turn_and_made_once(room: Room) -> None:
    conversation_id = await full(room, Overflow.SUMMARISE)
    _, first = await summed_up(room, conversation_id, f"8{TURN}")
    later = await talk(room, conversation_id, "Short")
    assert later.prompt[: len(first.prompt)] == first.prompt
    assert (await answers(room, conversation_id))[-1].seen.summary == ""


async def test_another_answer_keeps_the_summary_of_the_one_it_replaces(room: Room) -> None:
    conversation_id = await full(room, Overflow.SUMMARISE)
    _, first = await summed_up(room, conversation_id, f"8{TURN}")
    again = await finish(room, await room.session.plan_again(conversation_id))
    assert again.prompt == first.prompt
    later = await talk(room, conversation_id, "Short")
    assert "They like cats." in text_of(room, later)


async def test_the_next_summary_contains_the_one_before(room: Room) -> None:
    conversation_id = await full(room, Overflow.SUMMARISE)
    await summed_up(room, conversation_id, f"8{TURN}")
    for letter in "abcd":
        await talk(room, conversation_id, f"{letter}{TURN}")
    summary, answer = await summed_up(room, conversation_id, f"e{TURN}")
    assert "They like cats." in text_of(room, summary)
    assert "7xxx" in text_of(room, summary)
    assert "7xxx" not in text_of(room, answer)


async def test_what_is_far_too_long_is_summed_up_in_parts(room: Room) -> None:
    room.engine.max_request_tokens = 8000
    conversation_id = await full(room)
    for number in range(8, 30):
        await talk(room, conversation_id, f"{number}{TURN}")
    room.engine.max_request_tokens = 2000
    await room.conversations.set_overflow(conversation_id, Overflow.SUMMARISE)
    writing = await room.session.plan_reply(conversation_id, "And now?")
    task = asyncio.create_task(room.session.reply(writing))
    num_requests = len(room.engine.streams)
    while not task.done():
        num_requests += 1
        stream = await room.stream(count=num_requests)
        assert len(stream.prompt) < 2000
        stream.end(f"Part {num_requests}.")
        for _ in range(50):
            await asyncio.sleep(0.002)
            if task.done() or len(room.engine.streams) > num_requests:
                break
    assert num_requests - 30 > 2
    assert f"Part {num_requests - 1}." in text_of(room, room.engine.streams[-1])


async def test_progress_of_a_summary_is_told(room: Room) -> None:
    conversation_id = await full(room, Overflow.SUMMARISE)
    writing = await room.session.plan_reply(conversation_id, f"8{TURN}")
    task = asyncio.create_task(room.session.reply(writing))
    stream = await room.stream(count=9)
    assert writing.answer.doing == "Summing up the 6 oldest turns…"
    stream.write("They like ")
    async with asyncio.timeout(5):
        while writing.answer.doing != "Summing up the 6 oldest turns… 2 words":
            await asyncio.sleep(0.002)
    stream.end("cats.")
    (await room.stream(count=10)).end("Yes.")
    await task
    assert writing.answer.doing == ""


async def test_stopping_a_summary_ends_the_answer_and_keeps_the_message(room: Room) -> None:
    conversation_id = await full(room, Overflow.SUMMARISE)
    writing = await room.session.plan_reply(conversation_id, f"8{TURN}")
    task = asyncio.create_task(room.session.reply(writing))
    await room.stream(count=9)
    writing.stop()
    await task
    user, answer = (await room.stored(conversation_id))[-2:]
    assert user.content == f"8{TURN}"
    assert answer.state is MessageState.STOPPED
    assert len(room.engine.streams) == 9


async def test_a_model_that_writes_no_summary_fails_the_answer_with_a_sentence(room: Room) -> None:
    conversation_id = await full(room, Overflow.SUMMARISE)
    writing = await room.session.plan_reply(conversation_id, f"8{TURN}")
    task = asyncio.create_task(room.session.reply(writing))
    (await room.stream(count=9)).end("  ")
    await task
    answer = (await room.stored(conversation_id))[-1]
    assert answer.state is MessageState.FAILED
    assert "wrote no summary" in answer.notice


async def test_a_failing_engine_during_a_summary_is_said(room: Room) -> None:
    conversation_id = await full(room, Overflow.SUMMARISE)
    writing = await room.session.plan_reply(conversation_id, f"8{TURN}")
    task = asyncio.create_task(room.session.reply(writing))
    (await room.stream(count=9)).fail(EngineError("It broke: try again."))
    await task
    assert (await room.stored(conversation_id))[-1].notice == "It broke: try again."
