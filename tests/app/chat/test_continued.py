"""Going on from another token: a new answer beside the old one, which stays as it was."""

import asyncio
from dataclasses import replace

import pytest

from app.chat.answer_form import AnswerForm
from app.chat.likelihoods import NUM_ALTERNATIVES
from app.chat.message import Message
from app.history.conversations import Conversations
from engine.errors import NotFound, UsageError
from engine.guided.grammar import GrammarKind
from engine.logprobs import TokenChoice, TokenLogprob
from tests.app.chat.room import Room


def choices(text: str) -> tuple[TokenChoice, ...]:
    """Each letter likely, with the next one of the alphabet, and an end, beside it."""
    return tuple(
        TokenChoice(
            TokenLogprob(each, -0.1),
            (TokenLogprob(each, -0.1), TokenLogprob(each + 1, -2.5), TokenLogprob(274, -4.0)),
        )
        for each in text.encode()
    )


@pytest.fixture
def room(room: Room) -> Room:
    room.settings = replace(room.settings, show_likelihoods=True)
    return room


async def answered(room: Room, text: str = "Good", form: AnswerForm | None = None) -> Message:
    made = await room.conversations.create(answer_form=form)
    writing = await room.session.plan_reply(made.conversation_id, "Hello")
    task = asyncio.create_task(room.session.reply(writing))
    stream = await room.stream()
    stream.write(text, choices(text))
    stream.end()
    await task
    return (await room.stored(made.conversation_id))[-1]


async def test_the_engine_is_asked_and_what_it_tells_is_stored(room: Room) -> None:
    answer = await answered(room)
    assert room.engine.streams[-1].options.num_logprobs == NUM_ALTERNATIVES
    assert answer.likelihoods is not None
    tokens = answer.likelihoods.tokens()
    assert [each.text for each in tokens] == ["G", "o", "o", "d"]
    assert [each.text for each in tokens[0].alternatives] == ["G", "H", ""]


async def test_nothing_is_asked_while_it_is_switched_off(room: Room) -> None:
    room.settings = replace(room.settings, show_likelihoods=False)
    made = await room.conversations.create()
    writing = await room.session.plan_reply(made.conversation_id, "Hello")
    task = asyncio.create_task(room.session.reply(writing))
    stream = await room.stream()
    stream.end("Good")
    await task
    assert stream.options.num_logprobs is None
    assert (await room.stored(made.conversation_id))[-1].likelihoods is None


async def test_an_alternative_begins_a_new_answer_that_the_model_goes_on_with(room: Room) -> None:
    old = await answered(room)
    # Also when it was switched off since.
    room.settings = replace(room.settings, show_likelihoods=False)
    job = await room.jobs.continue_from(old.conversation_id, old.message_id, 2, ord("p"))
    stream = await room.stream(count=2)
    assert bytes(stream.beginning) == b"Gop"
    assert stream.prompt == room.engine.streams[0].prompt
    stream.write("her", choices("her"))
    stream.end()
    await job.finished()
    new = (await room.stored(old.conversation_id))[-1]
    assert (new.content, bytes(new.token_ids)) == ("Gopher", b"Gopher")
    assert new.likelihoods is not None
    tokens = new.likelihoods.tokens()
    assert [each.text for each in tokens] == list("Gopher")
    assert (tokens[2].logprob, tokens[1].logprob) == (-2.5, -0.1)
    assert old.parent_id is not None
    siblings = await room.conversations.siblings(new.message_id)
    assert siblings == [old.message_id, new.message_id]
    assert (await room.conversations.path(old.message_id))[-1] == old


async def test_it_goes_on_in_the_form_of_the_old_answer(room: Room) -> None:
    form = AnswerForm.of_own(GrammarKind.REGEX, "[A-Z][a-z]+")
    old = await answered(room, form=form)
    await room.conversations.set_answer_form(old.conversation_id, None)
    job = await room.jobs.continue_from(old.conversation_id, old.message_id, 1, ord("p"))
    stream = await room.stream(count=2)
    assert stream.guidance is not None and stream.guidance.grammar.grammar == form.grammar
    assert stream.prompt == room.engine.streams[0].prompt
    stream.end("q")
    await job.finished()
    new = (await room.stored(old.conversation_id))[-1]
    assert new.made_in is not None and new.made_in.form == form


@pytest.mark.parametrize(
    ("place", "token_id"), [(2, ord("o")), (2, ord("z")), (2, 274), (9, 1), (-1, ord("e"))]
)
async def test_what_is_no_alternative_is_refused_and_nothing_is_stored(
    room: Room, place: int, token_id: int
) -> None:
    old = await answered(room)
    with pytest.raises(UsageError, match="choose an alternative"):
        await room.jobs.continue_from(old.conversation_id, old.message_id, place, token_id)
    assert await room.conversations.siblings(old.message_id) == [old.message_id]


async def test_what_cannot_be_gone_on_with_is_a_sentence(room: Room) -> None:
    old = await answered(room)
    other = await room.conversations.create()
    with pytest.raises(NotFound):
        await room.jobs.continue_from(other.conversation_id, old.message_id, 2, ord("p"))
    info = replace(room.chat_model.loaded.info, name="another")
    room.chat_model = replace(room.chat_model, loaded=replace(room.chat_model.loaded, info=info))
    with pytest.raises(UsageError, match="written by fake-model, and another is loaded"):
        await room.jobs.continue_from(old.conversation_id, old.message_id, 2, ord("p"))


async def test_an_answer_that_may_not_be_so_long_is_refused(room: Room) -> None:
    old = await answered(room)
    await room.conversations.set_sampling(old.conversation_id, {"max_tokens": 3})
    with pytest.raises(UsageError, match="would begin with 3 tokens, and the longest answer has 3"):
        await room.jobs.continue_from(old.conversation_id, old.message_id, 2, ord("p"))


async def test_without_likelihoods_there_is_nothing_to_choose(room: Room) -> None:
    conversations: Conversations = room.conversations
    made = await conversations.create()
    turn = await conversations.begin_turn(made.conversation_id, "Hello")
    await conversations.interrupt_stale()
    with pytest.raises(UsageError, match="switch on in the settings"):
        await room.jobs.continue_from(made.conversation_id, turn.answer.message_id, 0, 1)
