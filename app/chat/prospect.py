"""What may come next in a conversation, and what the sampling controls make of it, step by step.

the prompt of its last answer -> one background request -> the row of logits, kept
the row, and any choice of controls -> the chain that the sampler uses -> probabilities
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.chat.belonging import belonging_of
from app.chat.chat_model import ChatModel
from app.chat.draft import Draft
from app.chat.example import Example
from app.chat.message import Conversation, Message, Role, unstored
from app.chat.prompts import left_out_before, prompt_digest
from app.chat.whole_reading import Reading, reading_of
from app.history.conversations import Conversations
from engine.errors import EngineError, UsageError
from engine.kv.segment import Belonging
from engine.request import RequestOptions
from engine.sampling.chain import Distribution, Place, explain
from engine.sampling.checks import check_vocabulary
from engine.sampling.state import SamplerState
from engine.sampling.vocabulary import SamplingVocabulary
from engine.sampling_params import SamplingParams
from engine.tokenizer import Tokenizer

if TYPE_CHECKING:
    from app.documents.answering import Answering

NUM_SHOWN = 20
NUM_KEPT = 4
"""Rows of logits; each takes four bytes for every token of the vocabulary."""
SAMPLE = "Tell me about the sea in one sentence."


@dataclass(frozen=True, slots=True)
class Step:
    """What a step of the chain leaves: of how many tokens, and the chance of all but the shown."""

    name: str
    num_tokens: int
    others: float


@dataclass(frozen=True, slots=True)
class Likely:
    """A token with its probability after each step; `is_control`: it is no text of an answer."""

    token_id: int
    text: str
    is_control: bool
    probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """The likeliest tokens, the best first. `is_sample`: nothing was said yet, so it is that of a
    sample text. `has_form`: the next answer has a form, which is not counted here."""

    steps: tuple[Step, ...]
    tokens: tuple[Likely, ...]
    is_sample: bool
    has_form: bool


class Prospects:
    """Looks ahead; changes nothing, and waits for everyone else. Owned by the event loop.

    `model` gives the loaded model, or None as long as there is none.
    """

    def __init__(
        self,
        conversations: Conversations,
        model: Callable[[], ChatModel | None],
        answering: "Callable[[], Answering] | None" = None,
    ) -> None:
        self._conversations = conversations
        self._model = model
        self._answering = answering
        self._rows: dict[tuple[str, str], asyncio.Task[NDArray[np.float32]]] = {}
        self._vocabulary: SamplingVocabulary | None = None
        self._of: ChatModel | None = None
        """Whose rows and vocabulary these are."""

    async def look(
        self,
        conversation_id: str | None,
        params: SamplingParams,
        system_prompt: str = "",
        examples: Sequence[Example] = (),
    ) -> Prospect:
        """After the last message of the user. A conversation that is not stored yet would have
        `system_prompt` and `examples`. Raises the sentence that says why it cannot be told."""
        model = self._model()
        if model is None:
            raise UsageError("The model is not loaded yet: look again in a moment.")
        check_vocabulary(params.logit_bias, model.loaded.tokenizer.num_tokens)
        conversation, shown = await self._asked(conversation_id, system_prompt, examples)
        path = list(shown)
        while path and path[-1].role is not Role.USER:
            path.pop()
        held = left_out_before(shown)
        draft = Draft(model, conversation, path, None if path else SAMPLE)
        belonging = belonging_of(conversation.conversation_id)
        documents = conversation.read_whole
        if documents is not None and self._answering is not None:
            reading = await reading_of(draft, documents, params.max_tokens, self._answering())
            if isinstance(reading, Reading):
                draft, belonging = await reading.applied(draft)
        prompt = await draft.token_ids(held.first_id, held.summary)
        vocabulary = self._vocabulary_of(model)
        row = await self._row(model, belonging, prompt)
        # By chance it would be another picture each time.
        steady = replace(params, seed=params.seed or 0)
        distributions = await asyncio.to_thread(_explained, row, steady, vocabulary, prompt)
        return Prospect(
            steps=tuple(_step(each, _likeliest(distributions[0])) for each in distributions),
            tokens=tuple(_tokens(distributions, model.loaded.tokenizer)),
            is_sample=not path,
            has_form=conversation.answer_form is not None,
        )

    def forget(self, conversation_id: str) -> None:
        """The conversation was deleted."""
        for key in [key for key in self._rows if key[0] == conversation_id]:
            del self._rows[key]

    def forget_all(self) -> None:
        """The model goes: what holds a part of it would keep its memory."""
        self._rows.clear()
        self._of = self._vocabulary = None

    async def _asked(
        self, conversation_id: str | None, system_prompt: str, examples: Sequence[Example]
    ) -> tuple[Conversation, list[Message]]:
        if conversation_id is not None:
            messages = await self._conversations.messages(conversation_id)
            return await self._conversations.get(conversation_id), messages
        return unstored(system_prompt, examples), []

    async def _row(
        self, model: ChatModel, belonging: Belonging, prompt: list[int]
    ) -> NDArray[np.float32]:
        key = belonging.owner, prompt_digest(prompt)
        task = self._rows.pop(key, None)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = asyncio.create_task(_read(model, belonging, prompt))
        self._rows[key] = task
        while len(self._rows) > NUM_KEPT:
            del self._rows[next(iter(self._rows))]
        # Several may wait for the same one, and one of them may go.
        return await asyncio.shield(task)

    def _vocabulary_of(self, model: ChatModel) -> SamplingVocabulary:
        if self._vocabulary is None or self._of is not model:
            self.forget_all()
            self._of, self._vocabulary = model, SamplingVocabulary(model.loaded.tokenizer)
        return self._vocabulary


async def _read(model: ChatModel, belonging: Belonging, prompt: list[int]) -> NDArray[np.float32]:
    options = RequestOptions(belonging=belonging, is_background=True, shows_logits=True)
    logits = None
    with model.loaded.engine.submit(prompt, SamplingParams(), options) as stream:
        async for output in stream:
            logits = output.logits
    if logits is None:
        raise EngineError("What may come next could not be computed: look again in a moment.")
    return logits


def _explained(
    row: NDArray[np.float32],
    params: SamplingParams,
    vocabulary: SamplingVocabulary,
    prompt: Sequence[int],
) -> list[Distribution]:
    state = SamplerState(params, vocabulary, len(prompt), len(prompt))
    return explain(row, state, Place(prompt, 0))


def _likeliest(first: Distribution) -> NDArray[np.intp]:
    order = np.argsort(-first.probabilities, kind="stable")[:NUM_SHOWN]
    return first.token_ids[order]


def _step(distribution: Distribution, shown: NDArray[np.intp]) -> Step:
    """`shown` are the ids of those that are listed."""
    known = np.isin(distribution.token_ids, shown)
    others = float(distribution.probabilities[~known].sum())
    return Step(distribution.name, int(np.count_nonzero(distribution.probabilities)), others)


def _tokens(distributions: Sequence[Distribution], tokenizer: Tokenizer) -> list[Likely]:
    controls = {token.token_id: token.text for token in tokenizer.control_tokens.values()}
    return [
        Likely(
            token_id=int(each),
            text=controls.get(int(each)) or _text(tokenizer, int(each)),
            is_control=int(each) in controls,
            probabilities=tuple(_probability(one, int(each)) for one in distributions),
        )
        for each in _likeliest(distributions[0])
    ]


def _text(tokenizer: Tokenizer, token_id: int) -> str:
    return tokenizer.token_bytes(token_id).decode(errors="replace")


def _probability(distribution: Distribution, token_id: int) -> float:
    """0 for a token that is out."""
    place = int(np.searchsorted(distribution.token_ids, token_id))
    if place == len(distribution.token_ids) or distribution.token_ids[place] != token_id:
        return 0.0
    return float(distribution.probabilities[place])
