"""Between two turns: what the next one will send is read, and the chat gets its title."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.chat.message import Message, Role
from app.chat.title import QUESTION
from app.chat.turns import Turn, normalise
from app.settings import Settings
from engine.errors import EngineDead
from engine.request import FinishReason
from tests.app.chat.room import Room
from tests.fakes_model import fake_chat_model
from tests.fakes_text import FAMILIES
from tests.waiting import until

PLAIN = "The answer is that one which nobody expected, and it took a while to be found out."
THOUGHT = "<think>\nLet me see what the user may want to hear of me in this place.\n</think>\n\n"
ANSWERS = {
    "plain": PLAIN,
    "thinking": THOUGHT + PLAIN,
    "empty thinking": "<think>\n\n</think>\n\n" + PLAIN,
    "space around": f"\n\n {PLAIN} \n\n",
}
# What stands between an answer and the next message, and between that and the next answer.
MOST_GLUE = 30


@pytest.fixture(params=[family.name for family in FAMILIES])
async def any_room(home: Path, request: pytest.FixtureRequest) -> AsyncIterator[Room]:
    room = Room(home / "history.sqlite3", request.param, 100_000)
    yield room
    await room.close()


async def new(room: Room, **choices: object) -> str:
    made = await room.conversations.create(system_prompt="Be brief.", **choices)  # type: ignore[arg-type]
    return made.conversation_id


async def talk(room: Room, conversation_id: str, text: str, answer: str) -> Message:
    """One turn, and whatever comes after it."""
    number = len(room.engine.streams)
    job = await room.jobs.send(conversation_id, text)
    (await room.stream(number, number + 1)).end(answer)
    message = (await job.finished()).message
    await room.jobs.at_rest(conversation_id)
    return message


def num_read(room: Room) -> int:
    stream = room.engine.streams[-1]
    return len(stream.prompt) - stream.num_cached


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_the_next_turn_reads_its_own_message_and_what_the_template_puts_around(
    any_room: Room, answer: str
) -> None:
    """QwenLM/Qwen3.8#131: thinking that the template strips made the whole turn be read again."""
    conversation_id = await new(any_room)
    for number in range(4):
        question = f"{number}: and what of it?"
        await talk(any_room, conversation_id, question, answer)
        if number:
            num_own = len(any_room.chat_model.loaded.tokenizer.encode(question))
            assert num_own < num_read(any_room) <= num_own + MOST_GLUE < num_own + len(PLAIN)


async def test_nothing_is_prepared_where_the_template_leaves_answers_as_they_were(
    any_room: Room,
) -> None:
    template = any_room.template_name
    conversation_id = await new(any_room)
    # These put a space before an answer, and models that know them write one.
    answer = " " + PLAIN if template in {"llama2", "mistral", "vicuna"} else PLAIN
    if template == "deepseek_r1":
        answer = THOUGHT.removeprefix("<think>") + PLAIN
    message = await talk(any_room, conversation_id, "What?", answer)
    assert message.content.strip() == PLAIN
    assert bool(any_room.engine.background) == (template == "deepseek_r1")


async def test_what_is_prepared_belongs_to_the_chat_and_waits_for_everybody(home: Path) -> None:
    room = Room(home / "history.sqlite3", "qwen3")
    conversation_id = await new(room)
    await talk(room, conversation_id, "What?", THOUGHT + PLAIN)
    (prepared,) = room.engine.background
    assert prepared.options.is_preparation
    assert prepared.options.belonging.owner == conversation_id
    assert prepared.options.belonging.is_durable
    assert not prepared.options.is_reproducible
    await room.close()


async def test_in_reproducible_mode_the_answer_is_read_as_the_next_turn_needs_it(
    room: Room,
) -> None:
    room.settings = replace(room.settings, reproducible=True)
    conversation_id = await new(room)
    message = await talk(room, conversation_id, "What?", PLAIN)
    assert room.engine.streams[0].options.is_reproducible
    assert message.timings["is_reproducible"] is True
    (prepared,) = room.engine.background
    assert prepared.options.is_reproducible
    await talk(room, conversation_id, "And?", PLAIN)
    assert room.engine.streams[1].prompt[: len(prepared.prompt)] == prepared.prompt
    assert len(prepared.prompt) > len(room.engine.streams[0].prompt) + len(PLAIN)


async def test_a_stopped_answer_is_prepared_like_any_other(home: Path) -> None:
    room = Room(home / "history.sqlite3", "qwen3")
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "What?")
    stream = await room.stream()
    stream.write(THOUGHT + PLAIN)
    await until(lambda: job.answer.message.content)
    room.jobs.stop(conversation_id)
    await room.jobs.at_rest(conversation_id)
    await talk(room, conversation_id, "Go on", PLAIN)
    assert num_read(room) < MOST_GLUE
    await room.close()


async def test_an_answer_that_failed_is_not_prepared(home: Path) -> None:
    room = Room(home / "history.sqlite3", "qwen3")
    conversation_id = await new(room)
    await room.jobs.send(conversation_id, "What?")
    stream = await room.stream()
    stream.write(THOUGHT + PLAIN)
    stream.fail(EngineDead("The engine has stopped."))
    await room.jobs.at_rest(conversation_id)
    assert room.engine.background == []
    await room.close()


@pytest.fixture
async def busy_room(home: Path) -> AsyncIterator[Room]:
    """Its template rewrites answers, and what is asked in the background does not come to an end
    by itself."""
    room = Room(home / "history.sqlite3", "qwen3")
    room.engine.is_busy = True
    yield room
    await room.close()


async def begin_preparation(room: Room) -> str:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "What?")
    (await room.stream()).end(THOUGHT + PLAIN)
    await job.finished()
    await until(lambda: room.engine.background)
    return conversation_id


@pytest.mark.parametrize("step", ["send", "regenerate", "delete", "close"])
async def test_whatever_the_user_does_next_ends_the_preparation(busy_room: Room, step: str) -> None:
    conversation_id = await begin_preparation(busy_room)
    (prepared,) = busy_room.engine.background
    match step:
        case "send":
            await busy_room.jobs.send(conversation_id, "And?")
        case "regenerate":
            await busy_room.jobs.regenerate(conversation_id)
        case "delete":
            await busy_room.jobs.leave(conversation_id)
        case "close":
            await busy_room.jobs.close()
    if step in ("send", "regenerate"):
        await until(lambda: len(busy_room.engine.streams) == 2)
    assert prepared.is_aborted
    assert busy_room.idle.num_running == 0


async def test_a_chat_has_one_preparation_at_a_time(busy_room: Room) -> None:
    conversation_id = await begin_preparation(busy_room)
    await busy_room.jobs.send(conversation_id, "And?")
    (await busy_room.stream(1, 2)).end(THOUGHT + PLAIN)
    await until(lambda: len(busy_room.engine.background) == 2)
    first, second = busy_room.engine.background
    assert first.is_aborted
    assert not second.is_over
    assert busy_room.idle.num_running == 1


async def test_another_chat_is_left_alone(busy_room: Room) -> None:
    await begin_preparation(busy_room)
    await busy_room.jobs.send(await new(busy_room), "Hello")
    await busy_room.stream(1, 2)
    assert not busy_room.engine.background[0].is_over


async def test_an_engine_that_died_ends_it_quietly(
    busy_room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "app.chat.idle")
    conversation_id = await begin_preparation(busy_room)
    busy_room.engine.background[0].fail(EngineDead("The engine has stopped."))
    await busy_room.jobs.at_rest(conversation_id)
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage() == "idle work was left undone: The engine has stopped."


async def test_a_chat_that_fills_the_context_is_left_as_it_is(home: Path) -> None:
    room = Room(home / "history.sqlite3", "deepseek_r1", 300)
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "What?")
    (await room.stream()).end("x" * 400)
    await job.finished()
    await room.jobs.at_rest(conversation_id)
    assert room.engine.background == []
    await room.close()


# Titles


@pytest.fixture
async def naming_room(room: Room) -> Room:
    room.settings = Settings()
    room.engine.background_script = "A good question"
    return room


async def title(room: Room, conversation_id: str) -> str:
    return (await room.conversations.get(conversation_id)).title


async def test_the_model_names_a_chat_after_its_first_answer(naming_room: Room) -> None:
    room = naming_room
    conversation_id = await new(room)
    await talk(room, conversation_id, "What is it?", PLAIN)
    assert await title(room, conversation_id) == "A good question"
    (asked,) = room.engine.background
    assert asked.options.is_background
    assert asked.options.belonging.owner == conversation_id
    assert asked.params.temperature == 0.0
    assert asked.params.max_tokens == 16


async def test_the_question_for_a_title_shares_the_whole_chat(naming_room: Room) -> None:
    room = naming_room
    conversation_id = await new(room)
    await talk(room, conversation_id, "What is it?", PLAIN)
    chat, (asked,) = room.engine.streams[0], room.engine.background
    held = [*chat.prompt, *PLAIN.encode()]
    assert asked.prompt[: len(held)] == held
    num_asked = len(room.chat_model.loaded.tokenizer.encode(QUESTION))
    assert len(asked.prompt) - asked.num_cached <= num_asked + MOST_GLUE


async def test_after_a_title_the_next_turn_reads_as_if_nothing_had_happened(home: Path) -> None:
    """open-webui/open-webui#6677: titles made the next turn read the whole chat."""
    read = []
    for automatic_titles in (False, True):
        room = Room(home / f"{automatic_titles}.sqlite3")
        room.settings = Settings(automatic_titles=automatic_titles)
        room.engine.background_script = "A good question"
        conversation_id = await new(room)
        for text in ("What is it?", "And why?", "Since when?"):
            await talk(room, conversation_id, text, PLAIN)
            read.append((room.engine.streams[-1].prompt, num_read(room)))
        assert len(room.engine.background) == automatic_titles
        await room.close()
    assert read[:3] == read[3:]


@pytest.mark.parametrize("answer", ["", "\n", "***", "A broken \ufffd thing"])
async def test_an_answer_that_is_no_title_leaves_the_first_words(
    naming_room: Room, answer: str
) -> None:
    naming_room.engine.background_script = answer
    conversation_id = await new(naming_room)
    await talk(naming_room, conversation_id, "What is it?", PLAIN)
    assert len(naming_room.engine.background) == 1
    assert await title(naming_room, conversation_id) == "What is it?"


async def test_a_title_that_the_user_gave_is_never_asked_about(naming_room: Room) -> None:
    conversation_id = await new(naming_room, title="Mine")
    await talk(naming_room, conversation_id, "What is it?", PLAIN)
    assert naming_room.engine.background == []
    assert await title(naming_room, conversation_id) == "Mine"


async def test_a_title_that_the_user_gives_meanwhile_stays(naming_room: Room) -> None:
    room = naming_room
    room.engine.background_script = None
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "What is it?")
    (await room.stream()).end(PLAIN)
    await job.finished()
    await until(lambda: room.engine.background)
    await room.conversations.rename(conversation_id, "Mine")
    room.engine.background[0].end("A good question")
    await room.jobs.at_rest(conversation_id)
    assert await title(room, conversation_id) == "Mine"


async def test_a_next_message_is_worth_more_than_a_title(naming_room: Room) -> None:
    room = naming_room
    room.engine.background_script = None
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "What is it?")
    (await room.stream()).end(PLAIN)
    await job.finished()
    await until(lambda: room.engine.background)
    await talk(room, conversation_id, "And why?", PLAIN)
    assert room.engine.background[0].is_aborted
    assert len(room.engine.background) == 1
    assert await title(room, conversation_id) == "What is it?"


async def test_titles_can_be_switched_off(room: Room) -> None:
    assert not room.settings.automatic_titles
    conversation_id = await new(room)
    await talk(room, conversation_id, "What is it?", PLAIN)
    assert room.engine.background == []


async def test_only_the_first_answer_brings_a_title(naming_room: Room) -> None:
    conversation_id = await new(naming_room)
    naming_room.engine.background_script = ""
    await talk(naming_room, conversation_id, "What is it?", PLAIN)
    await talk(naming_room, conversation_id, "And why?", PLAIN)
    assert len(naming_room.engine.background) == 1


async def test_a_stopped_answer_brings_no_title(naming_room: Room) -> None:
    conversation_id = await new(naming_room)
    await naming_room.jobs.send(conversation_id, "What is it?")
    (await naming_room.stream()).end(PLAIN, FinishReason.ABORT)
    await naming_room.jobs.at_rest(conversation_id)
    assert naming_room.engine.background == []


@pytest.mark.parametrize("template", ["qwen3", "deepseek_r1"])
async def test_a_model_that_thinks_is_asked_for_its_title_without_thinking(
    home: Path, template: str
) -> None:
    room = Room(home / "history.sqlite3", template)
    room.settings = Settings()
    room.engine.background_script = "A good question"
    conversation_id = await new(room)
    answer = THOUGHT + PLAIN if template == "qwen3" else THOUGHT.removeprefix("<think>") + PLAIN
    message = await talk(room, conversation_id, "What is it?", answer)
    assert message.thinking
    asked = room.engine.background[-1]
    tokenizer = room.chat_model.loaded.tokenizer
    by_id = {token.token_id: token.text for token in tokenizer.control_tokens.values()}
    spelled = b"".join(
        by_id[each].encode() if each in by_id else tokenizer.token_bytes(each)
        for each in asked.prompt
    )
    assert spelled.endswith(b"</think>\n\n")
    assert await title(room, conversation_id) == "A good question"
    prepared = room.engine.background[0]
    assert asked.prompt[: len(prepared.prompt)] == prepared.prompt
    await room.close()


# Nothing that changes by itself stands in what was read


@pytest.mark.parametrize("template", ["chatml", "granite3"])
async def test_a_day_later_nothing_is_read_again(
    home: Path, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mintplex-Labs/anything-llm#6398: a date in the prompt made everything be read again."""
    room = Room(home / "history.sqlite3", template)
    conversation_id = await new(room)
    await talk(room, conversation_id, "What is it?", PLAIN)
    before = room.engine.streams[-1]
    monkeypatch.setattr("time.time", lambda: 1_900_000_000.0)
    # Another process, another day: nothing is remembered but what is stored.
    room.chat_model = fake_chat_model(room.engine, template)
    await talk(room, conversation_id, "And why?", PLAIN)
    held = [*before.prompt, *PLAIN.encode()]
    assert room.engine.streams[-1].prompt[: len(held)] == held
    await room.close()


async def test_choices_and_titles_do_not_stand_in_the_prompt(room: Room) -> None:
    """open-webui/computer#164: what changes must not stand before what was said."""
    conversation_id = await new(room)
    await talk(room, conversation_id, "What is it?", PLAIN)
    await room.conversations.rename(conversation_id, "Another name")
    await room.conversations.set_sampling(conversation_id, {"temperature": 0.1, "seed": 5})
    await talk(room, conversation_id, "And why?", PLAIN)
    first, second = room.engine.streams
    held = [*first.prompt, *PLAIN.encode()]
    assert second.prompt[: len(held)] == held
    assert second.num_cached == len(held)


@pytest.mark.parametrize("written", ["", "Half of"])
async def test_what_was_read_before_a_cancel_is_not_read_again(room: Room, written: str) -> None:
    """ggml-org/llama.cpp#29163: an interrupted generation dropped the whole KV."""
    conversation_id = await new(room)
    await talk(room, conversation_id, "What is it?", PLAIN)
    job = await room.jobs.send(conversation_id, "And why?")
    cut = await room.stream(1, 2)
    if written:
        cut.write(written)
        await until(lambda: job.answer.message.content)
    room.jobs.stop(conversation_id)
    await job.finished()
    job = await room.jobs.regenerate(conversation_id)
    again = await room.stream(2, 3)
    assert again.prompt == cut.prompt
    assert len(again.prompt) - again.num_cached == 1
    again.end(PLAIN)
    await job.finished()
    await talk(room, conversation_id, "Since when?", PLAIN)
    held = [*again.prompt, *PLAIN.encode()]
    assert room.engine.streams[-1].prompt[: len(held)] == held


async def test_a_message_sent_after_a_stop_goes_on_from_what_was_written(room: Room) -> None:
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "And why?")
    cut = await room.stream()
    cut.write("Half of")
    await until(lambda: job.answer.message.content)
    room.jobs.stop(conversation_id)
    await job.finished()
    await talk(room, conversation_id, "Go on", PLAIN)
    held = [*cut.prompt, *b"Half of"]
    assert room.engine.streams[1].prompt[: len(held)] == held


async def test_what_begins_the_next_prompt_is_all_that_does_not_depend_on_its_text(
    any_room: Room,
) -> None:
    model = any_room.chat_model
    path = [Turn(Role.USER, "What?"), Turn(Role.ASSISTANT, PLAIN, "", tuple(PLAIN.encode()))]
    prefix = await model.prefix(path, "Be brief.", 0.0)
    for text in ("And?", "  2 and 3", "\n\nué"):
        prompt = await model.prompt([*path, Turn(Role.USER, text)], "Be brief.", 0.0)
        num_common = len(os.path.commonprefix([prefix, prompt]))
        # White space at the beginning of a message may melt with what stands before it.
        assert num_common >= len(prefix) - 2
    assert normalise(path)


async def test_cancelling_in_the_first_moment_is_harmless(room: Room) -> None:
    room.settings = Settings()
    conversation_id = await new(room)
    job = await room.jobs.send(conversation_id, "What?")
    (await room.stream()).end(PLAIN)
    await job.finished()
    room.idle.cancel(conversation_id)
    room.idle.cancel(conversation_id)
    await asyncio.wait_for(room.jobs.at_rest(conversation_id), 5)
    assert room.idle.num_running == 0


@pytest.mark.parametrize(("template", "form"), [("llama3", "%d %b %Y"), ("granite3", "%B %d, %Y")])
async def test_a_date_that_stands_in_the_prompt_stays_that_of_the_first_day(
    home: Path, template: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """open-chat-studio#3625: with the day in the system prompt, midnight made all be read again."""
    room = Room(home / "history.sqlite3", template)
    conversation = await room.conversations.create()
    conversation_id = conversation.conversation_id
    first_day = datetime.fromtimestamp(conversation.created_at, UTC).astimezone().strftime(form)
    await talk(room, conversation_id, "What is it?", PLAIN)
    monkeypatch.setattr("time.time", lambda: conversation.created_at + 40 * 86_400)
    room.chat_model = fake_chat_model(room.engine, template)
    for question in ("And why?", "Since when?"):
        before = room.engine.streams[-1]
        await talk(room, conversation_id, question, PLAIN)
        held = [*before.prompt, *PLAIN.encode()]
        tokens = room.engine.streams[-1].prompt
        assert tokens[: len(held)] == held
        tokenizer = room.chat_model.loaded.tokenizer
        assert first_day in b"".join(map(tokenizer.token_bytes, tokens)).decode()
    # Another day in what the next turn would send would be read in between.
    assert room.engine.background == []
    await room.close()
