"""With the starter model: what is told of an answer, what may come next, and going on elsewhere."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.chat.answer_form import AnswerForm, Outcome
from app.chat.chat_model import ChatModel, load_chat_model
from app.chat.example import Example
from app.chat.message import Message
from app.chat.prospect import Prospects
from app.chat.session import ChatSession
from app.chat.writing import Writing
from app.history.conversations import Conversations
from app.history.database import Database
from app.settings import Settings
from engine.config import EngineConfig
from engine.errors import InvalidParams, UsageError
from engine.guided.grammar import GrammarKind
from engine.sampling_params import SamplingParams

pytestmark = pytest.mark.model
GREEDY = SamplingParams(temperature=0.0)


@dataclass
class Home:
    model: ChatModel
    conversations: Conversations
    session: ChatSession
    prospects: Prospects
    settings: Settings

    async def answer(self, writing: Writing) -> Message:
        await self.session.reply(writing)
        path = await self.conversations.path(writing.message.message_id)
        return path[-1]

    async def answered(self, text: str, form: AnswerForm | None = None) -> Message:
        made = await self.conversations.create(answer_form=form)
        return await self.answer(await self.session.plan_reply(made.conversation_id, text))


@pytest.fixture
async def place(home: Path, starter: Path) -> AsyncIterator[Home]:
    model = load_chat_model(EngineConfig(model_path=starter, context_tokens=1024))

    async def loaded() -> ChatModel:
        return model

    settings = Settings(
        default_sampling={"temperature": 0.0, "max_tokens": 40}, show_likelihoods=True
    )
    with Database(home / "history.sqlite3") as database:
        conversations = Conversations(database)
        session = ChatSession(conversations, loaded, lambda: settings)
        prospects = Prospects(conversations, lambda: model)
        yield Home(model, conversations, session, prospects, settings)
        conversations.close()
    model.close()


async def test_the_prospect_is_that_of_the_answer_that_was_given(place: Home) -> None:
    answer = await place.answered("Name a colour.")
    assert answer.likelihoods is not None
    first = answer.likelihoods.tokens()[0]
    assert "".join(each.text for each in answer.likelihoods.tokens()) == answer.content
    prospect = await place.prospects.look(answer.conversation_id, GREEDY)
    assert not prospect.is_sample and len(prospect.tokens) == 20
    assert prospect.tokens[0].token_id == answer.token_ids[0]
    # Two computations of different shape differ by rounding.
    assert prospect.tokens[0].probabilities[0] == pytest.approx(first.probability, abs=0.05)
    assert [step.name for step in prospect.steps] == ["model", "greedy"]
    assert prospect.tokens[0].probabilities[-1] == 1.0
    everything = sum(each.probabilities[0] for each in prospect.tokens) + prospect.steps[0].others
    assert everything == pytest.approx(1.0)


async def test_another_choice_of_controls_computes_nothing_again(place: Home) -> None:
    answer = await place.answered("Name a colour.")
    await place.prospects.look(answer.conversation_id, GREEDY)
    steps_before = place.model.loaded.engine._engine.clock.steps
    hot = await place.prospects.look(
        answer.conversation_id, SamplingParams(temperature=2.0, top_k=5)
    )
    assert place.model.loaded.engine._engine.clock.steps == steps_before
    names = [step.name for step in hot.steps]
    assert names[:2] == ["model", "top_k"] and names[-1] == "temperature"
    assert hot.steps[1].num_tokens == 5
    # Looking leaves nothing behind, and hinders no answer.
    again = await place.session.plan_again(answer.conversation_id)
    assert (await place.answer(again)).content == answer.content


async def test_looking_ahead_waits_for_an_answer_that_is_written(place: Home) -> None:
    made = await place.conversations.create()
    writing = await place.session.plan_reply(made.conversation_id, "Tell me about the sea.")
    replying = asyncio.create_task(place.session.reply(writing))
    while not writing.message.content:
        await asyncio.sleep(0.001)
    prospect = await place.prospects.look(None, GREEDY)
    assert writing.is_over and prospect.is_sample
    await replying
    assert writing.message.content == (await place.answered("Tell me about the sea.")).content


async def test_what_is_gone_is_forgotten(place: Home) -> None:
    answer = await place.answered("Name a colour.")
    await place.prospects.look(answer.conversation_id, GREEDY)
    await place.prospects.look(None, GREEDY)
    assert len(place.prospects._rows) == 2
    place.prospects.forget(answer.conversation_id)
    assert len(place.prospects._rows) == 1
    place.prospects.forget_all()
    assert (place.prospects._rows, place.prospects._vocabulary) == ({}, None)


async def test_a_new_conversation_has_a_sample_with_its_own_beginning(place: Home) -> None:
    plain = await place.prospects.look(None, GREEDY)
    told = await place.prospects.look(
        None, GREEDY, "Answer in French only.", (Example("Hello", "Bonjour"),) * 3
    )
    assert plain.is_sample and told.is_sample
    assert plain.tokens != told.tokens


async def test_what_cannot_be_told_is_a_sentence(place: Home) -> None:
    with pytest.raises(InvalidParams, match="this model has 49,152 tokens"):
        await place.prospects.look(None, SamplingParams(logit_bias=((60_000, 1.0),)))
    with pytest.raises(UsageError, match="not loaded yet"):
        await Prospects(place.conversations, lambda: None).look(None, GREEDY)


async def test_the_same_token_again_gives_the_same_answer_and_another_gives_another(
    place: Home,
) -> None:
    old = await place.answered("Tell me about the sea.")
    assert old.likelihoods is not None
    tokens = old.likelihoods.tokens()
    index = 3
    other = next(
        each
        for each in tokens[index].alternatives
        if each.text and each.token_id != old.token_ids[index]
    )
    writing = await place.session.plan_continued(
        old.conversation_id, old.message_id, index, other.token_id
    )
    new = await place.answer(writing)
    assert new.token_ids[:4] == (*old.token_ids[:3], other.token_id)
    assert new.content.startswith("".join(each.text for each in tokens[:3]) + other.text)
    assert new.likelihoods is not None
    assert len(new.likelihoods.tokens()) == len(new.token_ids) == 40
    assert new.timings["begun_tokens"] == 4 and new.timings["completion_tokens"] == 36
    # And back: with the token that came at first, the first answer comes once more.
    back = await place.session.plan_continued(
        old.conversation_id, new.message_id, index, old.token_ids[index]
    )
    assert (await place.answer(back)).content == old.content
    siblings = await place.conversations.siblings(old.message_id)
    assert len(siblings) == 3


async def test_an_answer_in_a_form_goes_on_in_it(place: Home) -> None:
    form = AnswerForm.of_own(GrammarKind.REGEX, "(red|green|blue), (one|two|three)")
    old = await place.answered("A colour and a number?", form)
    assert old.outcome is Outcome.WHOLE and old.likelihoods is not None
    index, other = next(
        (number, each)
        for number, token in enumerate(old.likelihoods.tokens())
        for each in token.alternatives
        if each.text and each.token_id != old.token_ids[number]
    )
    writing = await place.session.plan_continued(
        old.conversation_id, old.message_id, index, other.token_id
    )
    new = await place.answer(writing)
    assert new.outcome is Outcome.WHOLE and new.content != old.content
    colour, number = new.content.split(", ")
    assert colour in ("red", "green", "blue") and number in ("one", "two", "three")


async def test_likelihoods_do_not_change_what_is_said(place: Home) -> None:
    with_them = await place.answered("Count to ten.")
    plain = ChatSession(
        place.conversations,
        place.session._model,
        lambda: replace(place.settings, show_likelihoods=False),
    )
    made = await place.conversations.create()
    writing = await plain.plan_reply(made.conversation_id, "Count to ten.")
    await plain.reply(writing)
    assert writing.message.content == with_them.content
    assert writing.message.likelihoods is None
