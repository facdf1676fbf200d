"""With the real model: a turn reads its new tokens and nothing else."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.chat.message import Message, MessageState
from app.paths import Paths
from app.services import Services
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
