"""How full the context is, and what an answer was made from: nothing but what can be proved."""

from dataclasses import replace

import pytest

from app.chat.chat_model import ChatModel
from app.chat.message import Overflow
from app.chat.sight import Sight, Sights
from engine.errors import NotFound, UsageError
from tests.app.chat.room import Room
from tests.fakes_model import FakeEngine, fake_chat_model


@pytest.fixture
def room(room: Room) -> Room:
    room.engine.script = "Yes."
    room.engine.max_request_tokens = 2000
    room.settings = replace(room.settings, default_sampling={"max_tokens": 200})
    return room


def sights(room: Room, model: ChatModel | None = None) -> Sights:
    return Sights(room.conversations, lambda: model or room.chat_model, lambda: room.settings)


async def talk(room: Room, conversation_id: str, text: str) -> str:
    """A whole turn; the answer's id."""
    job = await room.jobs.send(conversation_id, text)
    answer = (await job.finished()).message
    await room.idle.at_rest(conversation_id)
    return answer.message_id


def exactly(room: Room, sight: Sight) -> str:
    return "".join(stretch.text for stretch in sight.stretches)


async def test_a_new_conversation_begins_with_the_system_prompt(room: Room) -> None:
    fill = await sights(room).fill(None, "Hello")
    assert fill is not None
    assert (fill.max_tokens, fill.limit) == (2000, 1800)
    assert 0 < fill.num_typed < len("Hello") + 1


async def test_the_first_message_makes_the_meter_no_jump(room: Room) -> None:
    before = await sights(room).fill(None, "")
    prompt = room.settings.default_system_prompt
    made = await room.conversations.create(system_prompt=prompt)
    empty = await sights(room).fill(made.conversation_id, "")
    await talk(room, made.conversation_id, "?")
    assert before is not None and empty is not None
    assert before.num_used == empty.num_used == len(room.engine.streams[-1].prompt)


async def test_after_an_answer_what_was_sent_and_written_is_used(room: Room) -> None:
    conversation_id = (await room.conversations.create()).conversation_id
    await talk(room, conversation_id, "Hello")
    fill = await sights(room).fill(conversation_id, "")
    assert fill is not None
    assert fill.num_used == len(room.engine.streams[-1].prompt) + len("Yes.")
    assert not fill.is_near


async def test_only_what_is_typed_is_counted_anew(room: Room) -> None:
    conversation_id = (await room.conversations.create()).conversation_id
    await talk(room, conversation_id, "A long story " * 30)
    tokenizer = room.chat_model.loaded.tokenizer
    encoded = tokenizer.encoded  # type: ignore[attr-defined]
    encoded.clear()
    await sights(room).fill(conversation_id, "typed")
    assert encoded == ["typed"]


async def test_a_huge_text_is_measured_by_its_beginning(room: Room) -> None:
    tokenizer = room.chat_model.loaded.tokenizer
    encoded = tokenizer.encoded  # type: ignore[attr-defined]
    encoded.clear()
    fill = await sights(room).fill(None, "x" * 1_000_000)
    assert fill is not None and fill.is_over
    assert fill.num_typed == 1_000_000
    assert max(map(len, encoded)) == 50_000


async def test_with_another_model_everything_is_counted(room: Room) -> None:
    conversation_id = (await room.conversations.create()).conversation_id
    await talk(room, conversation_id, "Hello")
    other = fake_chat_model(FakeEngine(4096), "llama3")
    loaded = replace(other.loaded, info=replace(other.loaded.info, name="another"))
    fill = await sights(room, replace(other, loaded=loaded)).fill(conversation_id, "")
    assert fill is not None and fill.num_used > 10
    other.close()


async def test_without_a_model_or_a_conversation_nothing_is_said(room: Room) -> None:
    nobody = Sights(room.conversations, lambda: None, lambda: room.settings)
    assert await nobody.fill(None, "Hello") is None
    assert await sights(room).fill("gone", "Hello") is None
    with pytest.raises(UsageError, match="not loaded yet"):
        conversation_id = (await room.conversations.create()).conversation_id
        await nobody.saw(await talk(room, conversation_id, "Hello"))


async def test_the_prompt_of_every_answer_is_shown_exactly_also_much_later(room: Room) -> None:
    made = await room.conversations.create(system_prompt="Be <kind>.")
    answers = [await talk(room, made.conversation_id, f"Say {number}") for number in range(4)]
    tokenizer = room.chat_model.loaded.tokenizer
    controls = {token.token_id: token.text for token in tokenizer.control_tokens.values()}
    for answer_id, stream in zip(answers, room.engine.streams, strict=True):
        sight = await sights(room).saw(answer_id)
        pieces = [
            controls.get(each, "").encode() or tokenizer.token_bytes(each) for each in stream.prompt
        ]
        assert exactly(room, sight) == b"".join(pieces).decode()
        assert (sight.doubt, sight.num_tokens) == ("", len(stream.prompt))
        assert [one.text for one in sight.stretches if one.is_control] == [
            controls[each] for each in stream.prompt if each in controls
        ]


@pytest.mark.parametrize("choice", [Overflow.DROP, Overflow.SUMMARISE])
async def test_what_was_left_out_is_not_shown_and_a_summary_is(
    room: Room, choice: Overflow
) -> None:
    conversation_id = (await room.conversations.create()).conversation_id
    await room.conversations.set_overflow(conversation_id, choice)
    answers = [await talk(room, conversation_id, f"<{n}> {'x' * 180}") for n in range(12)]
    first, last = await sights(room).saw(answers[0]), await sights(room).saw(answers[-1])
    assert (first.doubt, last.doubt) == ("", "")
    assert "<0> xxx" in exactly(room, first)
    assert "<0> xxx" not in exactly(room, last)
    assert last.has_summary == (choice is Overflow.SUMMARISE)


async def test_a_changed_system_prompt_is_said(room: Room) -> None:
    made = await room.conversations.create(system_prompt="Be kind.")
    answer_id = await talk(room, made.conversation_id, "Hello")
    await room.conversations.set_system_prompt(made.conversation_id, "Be rude.")
    sight = await sights(room).saw(answer_id)
    assert "can no longer be built" in sight.doubt
    assert "Be rude." in exactly(room, sight)


async def test_another_model_is_said_by_name(room: Room) -> None:
    conversation_id = (await room.conversations.create()).conversation_id
    answer_id = await talk(room, conversation_id, "Hello")
    other = fake_chat_model(FakeEngine(4096), "llama3")
    loaded = replace(other.loaded, info=replace(other.loaded.info, name="another"))
    sight = await sights(room, replace(other, loaded=loaded)).saw(answer_id)
    assert "written by fake-model, and another is loaded" in sight.doubt
    other.close()


async def test_an_answer_whose_prompt_was_not_recorded_says_so(room: Room) -> None:
    conversation_id = (await room.conversations.create()).conversation_id
    turn = await room.conversations.begin_turn(conversation_id, "Hello")
    await room.conversations.interrupt_stale()
    sight = await sights(room).saw(turn.answer.message_id)
    assert "was not recorded" in sight.doubt


async def test_only_answers_can_be_looked_into(room: Room) -> None:
    conversation_id = (await room.conversations.create()).conversation_id
    await talk(room, conversation_id, "Hello")
    (user, _) = await room.stored(conversation_id)
    with pytest.raises(UsageError, match="Only an answer"):
        await sights(room).saw(user.message_id)
    with pytest.raises(NotFound):
        await sights(room).saw("gone")
