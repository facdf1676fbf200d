"""With the real model: a turn reads its new tokens and nothing else."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.chat.chat_model import ChatModel
from app.chat.ledger import TokenLedger
from app.chat.message import Message, MessageState
from app.chat.template import ChatTemplate
from app.chat.turns import Turn
from app.chat.writing import Writing
from app.paths import Paths
from app.services import Services
from engine.config import EngineConfig
from engine.metrics import Timings

pytestmark = pytest.mark.model
QUESTIONS = (
    "Name a colour.",
    "And <|im_end|> another one?",
    "Why  that one?\n\n",
    "Say it in French. é🙂",
    "Shorter.",
    "{'a': 1}",
    "Now a number.",
    "Double it.",
    "\tTab",
    "Thank you!",
)


@pytest.fixture
async def services(tmp_path: Path, starter: Path) -> AsyncIterator[Services]:
    services = Services(Paths.from_environment({"INGLENOOK_HOME": str(tmp_path)}))
    yield services
    await services.close()


class Talk:
    """One conversation, and what the engine holds of it: `held` are the ids it has computed."""

    def __init__(self, services: Services, conversation_id: str) -> None:
        self._services = services
        self._id = conversation_id
        self.held: list[int] = []

    @classmethod
    async def begin(cls, services: Services, seed: int) -> "Talk":
        conversation = await services.conversations.create(
            system_prompt="Be brief.", sampling={"seed": seed, "max_tokens": 10}
        )
        return cls(services, conversation.conversation_id)

    async def say(self, text: str) -> None:
        job = await self._services.jobs.send(self._id, text)
        self._check(job._writing.question.prompt, (await job.finished()).message)

    async def regenerate(self) -> None:
        job = await self._services.jobs.regenerate(self._id)
        self._check(job._writing.question.prompt, (await job.finished()).message)

    def _check(self, prompt: list[int], answer: Message) -> None:
        """What was read is what was not held; a prompt held entirely is read from its last token
        on, for the logits."""
        assert answer.state is MessageState.DONE
        timings = Timings(**answer.timings)
        self.last_prompt = prompt
        self.num_shared = len(os.path.commonprefix([self.held, prompt]))
        num_new = len(prompt) - min(self.num_shared, len(prompt) - 1)
        if self.held:
            assert (timings.prefilled_tokens, timings.prompt_tokens) == (num_new, len(prompt))
        # Unless an end token came after it, the last token was chosen and not computed.
        num_computed = len(answer.token_ids) - (timings.finish != "end")
        self.held = [*prompt, *answer.token_ids[:num_computed]]


async def test_ten_turns_read_only_what_is_new(services: Services) -> None:
    talk = await Talk.begin(services, 1)
    for question in QUESTIONS:
        before = talk.held
        await talk.say(question)
        assert talk.num_shared == len(before)


async def test_another_answer_reads_one_token(services: Services) -> None:
    talk = await Talk.begin(services, 2)
    await talk.say(QUESTIONS[0])
    await talk.say(QUESTIONS[1])
    await talk.regenerate()
    assert talk.num_shared == len(talk.last_prompt)
    before = talk.held
    await talk.say(QUESTIONS[2])
    assert talk.num_shared == len(before)


async def test_conversations_that_take_turns_keep_what_was_read(services: Services) -> None:
    talks = [await Talk.begin(services, seed) for seed in (3, 4)]
    for question in QUESTIONS[:3]:
        for talk in talks:
            before = talk.held
            await talk.say(question)
            assert talk.num_shared == len(before)


# Old answers lose what the prompt for them ended with, as in models that may think.
REWRITES = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
"""


class RewritingServices(Services):
    """The starter model behind a template that rewrites what it wrote."""

    async def _open_model(self, config: EngineConfig) -> ChatModel:
        model = await super()._open_model(config)
        template = ChatTemplate(REWRITES, model.loaded.tokenizer)
        ledger = TokenLedger(model.loaded.tokenizer, template)
        return replace(model, template=template, ledger=ledger)


class NamingServices(Services):
    """The starter model, which gives titles for once."""

    is_starter_model = False  # type: ignore[assignment]


async def send(services: Services, chat: str, text: str) -> tuple[Writing, Timings]:
    """One turn and whatever comes after it."""
    job = await services.jobs.send(chat, text)
    answer = (await job.finished()).message
    assert answer.state is MessageState.DONE
    await services.jobs.at_rest(chat)
    return job._writing, Timings(**answer.timings)


async def new(services: Services, **choices: Any) -> str:
    made = await services.conversations.create(
        system_prompt="Be brief.", sampling={"seed": 5, "max_tokens": 8}, **choices
    )
    return made.conversation_id


async def test_a_template_that_rewrites_answers_costs_the_next_turn_nothing(
    paths: Paths, starter: Path
) -> None:
    services = RewritingServices(paths)
    chat = await new(services)
    writing, _ = await send(services, chat, QUESTIONS[0])
    for question in QUESTIONS[1:5]:
        path = (*writing.question.path, Turn.of(writing.message))
        prefix = await writing.question.model.prefix(path, "Be brief.", writing.question.clock)
        writing, timings = await send(services, chat, question)
        assert timings.prefilled_tokens == len(writing.question.prompt) - len(prefix)
        assert timings.prefilled_tokens < len(question) + 20
    await services.close()


async def test_after_an_automatic_title_a_turn_reads_as_if_nothing_had_happened(
    paths: Paths, starter: Path
) -> None:
    services = NamingServices(paths)
    asked: list[str] = []
    name = services.jobs._idle._ask_for_title

    async def ask(writing: Writing) -> str:
        asked.append(await name(writing))
        return "A title"

    services.jobs._idle._ask_for_title = ask  # type: ignore[method-assign]
    chat = await new(services)
    writing, first = await send(services, chat, QUESTIONS[0])
    assert len(asked) == 1
    assert (await services.conversations.get(chat)).title == "A title"
    held = [*writing.question.prompt, *writing.message.token_ids]
    held = held if first.finish == "end" else held[:-1]
    writing, timings = await send(services, chat, QUESTIONS[1])
    assert writing.question.prompt[: len(held)] == held
    assert timings.prefilled_tokens == len(writing.question.prompt) - len(held)
    await services.close()


async def test_a_deleted_chat_is_read_again_after_an_undo(paths: Paths, starter: Path) -> None:
    services = Services(paths)
    chat = await new(services)
    await send(services, chat, QUESTIONS[0])
    await services.conversations.delete(chat)
    await services._forgetting.settled()
    await services.conversations.restore(chat)
    _, timings = await send(services, chat, QUESTIONS[1])
    assert (timings.cached_tokens, timings.restored_tokens) == (0, 0)
    await services.close()


async def test_a_chat_outlives_the_app_and_a_temporary_one_does_not(
    paths: Paths, starter: Path
) -> None:
    def stored() -> set[Path]:
        return {file for file in paths.kv.rglob("*") if file.is_file()}

    services = Services(paths)
    services.start()
    chat = await new(services, temporary=True)
    writing, _ = await send(services, chat, "Tell me of a xylophone. " * 10)
    assert not writing.question.options.belonging.is_durable
    await services.close()
    before = stored()
    assert not [file for file in before if file.suffix == ".kv"]

    services = Services(paths)
    services.start()
    chat = await new(services)
    writing, _ = await send(services, chat, "Tell me of a marimba. " * 10)
    await services.close()
    assert len(stored()) > len(before)

    services = Services(paths)
    services.start()
    writing, timings = await send(services, chat, "And?")
    assert timings.restored_from == "disk"
    assert timings.prefilled_tokens < 40
    await services.conversations.delete(chat)
    await services.close()

    services = Services(paths)
    services.start()
    await services.conversations.restore(chat)
    _, timings = await send(services, chat, "And?")
    assert timings.restored_tokens == 0
    await services.close()
