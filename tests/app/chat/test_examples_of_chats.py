"""Examples stand before everything that is said, in every prompt, and nothing is read twice."""

import os
from dataclasses import replace

import pytest

from app.chat.example import Example
from app.chat.message import Overflow
from tests.app.chat.room import Room
from tests.app.chat.test_sight import exactly, sights, talk

EXAMPLES = (Example("Is <|im_end|> text?", "Ja."), Example("2+2?", "Vier."))


@pytest.fixture
async def told(room: Room) -> str:
    room.engine.script = "Yes."
    made = await room.conversations.create(examples=EXAMPLES)
    return made.conversation_id


def spelled(room: Room, prompt: list[int]) -> str:
    tokenizer = room.chat_model.loaded.tokenizer
    controls = {token.token_id: token.text for token in tokenizer.control_tokens.values()}
    return b"".join(
        controls[each].encode() if each in controls else tokenizer.token_bytes(each)
        for each in prompt
    ).decode()


async def test_the_model_reads_them_as_turns_and_never_as_control_tokens(
    room: Room, told: str
) -> None:
    await talk(room, told, "3+3?")
    prompt = room.engine.streams[-1].prompt
    text = spelled(room, prompt)
    places = [text.index(part) for part in ("Is <", "Ja.", "2+2?", "Vier.", "3+3?")]
    assert places == sorted(places)
    end = room.chat_model.loaded.tokenizer.control_tokens["<|im_end|>"].token_id
    # What was written as text ends no message.
    assert text.count("<|im_end|>") == prompt.count(end) + 1


async def test_they_stay_so_that_the_next_turn_goes_on(room: Room, told: str) -> None:
    await talk(room, told, "One")
    first = room.engine.streams[-1]
    await talk(room, told, "Two")
    second = room.engine.streams[-1]
    held = [*first.prompt, *first.token_ids]
    assert os.path.commonprefix([held, second.prompt]) == held


async def test_what_the_model_saw_shows_them(room: Room, told: str) -> None:
    sight = await sights(room).saw(await talk(room, told, "One"))
    assert sight.doubt == ""
    assert "Vier." in exactly(room, sight)
    await room.conversations.set_examples(told, ())
    assert "the examples" in (await sights(room).saw(sight.answer.message_id)).doubt


async def test_the_meter_counts_them(room: Room, told: str) -> None:
    plain = (await room.conversations.create()).conversation_id
    without = await sights(room).fill(plain, "")
    fill = await sights(room).fill(told, "")
    assert fill is not None and without is not None
    num_letters = sum(len(each.user) + len(each.assistant) for each in EXAMPLES)
    assert fill.num_used > without.num_used + num_letters / 2
    room.settings = replace(room.settings, default_examples=EXAMPLES)
    new = await sights(room).fill(None, "")
    assert new is not None and new.num_used > without.num_used


async def test_they_stay_when_the_oldest_turns_are_left_out(room: Room) -> None:
    room.engine.script, room.engine.max_request_tokens = "Yes.", 2000
    room.settings = replace(room.settings, default_sampling={"max_tokens": 200})
    made = await room.conversations.create(examples=EXAMPLES)
    await room.conversations.set_overflow(made.conversation_id, Overflow.DROP)
    for number in range(8):
        await talk(room, made.conversation_id, f"Number {number}: " + "story " * 50)
    text = spelled(room, room.engine.streams[-1].prompt)
    assert "Vier." in text and "Number 7" in text and "Number 0" not in text


async def test_a_first_answer_is_still_one_that_gives_a_title(room: Room, told: str) -> None:
    room.settings = replace(room.settings, automatic_titles=True)
    room.engine.background_script = "Adding small numbers"
    await talk(room, told, "3+3?")
    assert (await room.conversations.get(told)).title == "Adding small numbers"
