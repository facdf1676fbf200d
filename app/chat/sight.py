"""What the model sees: how full its context is, and what an answer was made from."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.chat.chat_model import ChatModel
from app.chat.context import FULL, prompt_limit
from app.chat.draft import Draft, message_size
from app.chat.example import Example
from app.chat.message import Conversation, Message, Role, unstored
from app.chat.prompts import left_out_before, prompt_digest
from app.chat.whole_reading import Cost, cost_of, held_reading
from app.documents.scope import Scope
from app.history.conversations import Conversations
from app.media.attachment import Attachment
from app.settings import Settings
from engine.errors import NotFound, UsageError
from engine.sampling_params import with_changes
from engine.tokenizer import Tokenizer

if TYPE_CHECKING:
    from app.documents.answering import Answering

LONGEST_COUNTED = 50_000
"""Characters of a text that is being written; a longer one is measured by its beginning."""


Beginning = tuple[str, Sequence[Example]]
"""A system prompt, and examples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """How much of the context a conversation takes, in tokens.

    `num_used` were sent or written so far, about, or stand before all of it: `num_whole` of them
    are those of a document that is read whole. `num_typed` are in the box. A prompt may have
    `limit` beside its answer, and both together `max_tokens`.
    """

    num_used: int
    num_typed: int
    limit: int
    max_tokens: int
    num_whole: int = 0

    @property
    def num_tokens(self) -> int:
        return self.num_used + self.num_typed

    @property
    def is_over(self) -> bool:
        return self.num_tokens > self.limit

    @property
    def is_near(self) -> bool:
        return self.num_tokens > FULL * self.limit


@dataclass(frozen=True, slots=True)
class Stretch:
    """Text of the prompt, or one control token."""

    text: str
    is_control: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The prompt of one answer. `doubt` says why it may have been another one, or is empty."""

    answer: Message
    stretches: tuple[Stretch, ...]
    num_tokens: int
    has_summary: bool
    doubt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeSight:
    """What reading a document whole takes; `kv_bytes` in memory, and once more on the disk. Without
    a `cost` it is not known yet, since there is no model."""

    name: str
    num_pages: int
    cost: Cost | None
    kv_bytes: int


class Sights:
    """Looks; changes nothing. Owned by the event loop.

    `model` gives the loaded model, or None as long as there is none.
    """

    def __init__(
        self,
        conversations: Conversations,
        model: Callable[[], ChatModel | None],
        settings: Callable[[], Settings],
        answering: "Callable[[], Answering] | None" = None,
    ) -> None:
        self._conversations = conversations
        self._model = model
        self._settings = settings
        self._answering = answering

    async def fill(
        self,
        conversation_id: str | None,
        typed: str,
        begun: Beginning | None = None,
        attachments: Sequence[Attachment] = (),
        documents: Scope | None = None,
    ) -> Fill | None:
        """How full it is with what is typed and added; None: there is no model, or the chat is
        gone.

        `begun` is what a new conversation would begin with, if it is not what all do, and
        `documents` what it would ask. Raises UsageError for a collection that is not there.
        """
        model = self._model()
        if model is None:
            return None
        settings = self._settings()
        params = settings.sampling
        tokenizer = model.loaded.tokenizer
        if conversation_id is None:
            usual = settings.default_system_prompt, settings.default_examples
            num_used = await _counted(model, unstored(*(begun or usual)), ())
        else:
            try:
                conversation = await self._conversations.get(conversation_id)
                num_used = await self._num_used(model, conversation)
            except NotFound:
                return None
            params = with_changes(params, conversation.sampling)
            documents = conversation.documents
        num_whole = await self._num_whole(model, documents, params.max_tokens)
        max_tokens = model.loaded.engine.max_request_tokens
        media = [each.media for each in attachments]
        num_shown = await asyncio.to_thread(model.num_media_tokens, media)
        return Fill(
            num_used=num_used + num_whole,
            num_typed=num_shown + await asyncio.to_thread(_size, tokenizer, typed),
            limit=prompt_limit(max_tokens, params.max_tokens),
            max_tokens=max_tokens,
            num_whole=num_whole,
        )

    async def whole(self, documents: Scope, conversation_id: str | None) -> WholeSight | None:
        """What it would take to read all of the one document that is asked. None: it is not one.
        Raises UsageError for a collection that is not there."""
        if self._answering is None:
            return None
        read = await self._answering().whole(documents)
        if read is None:
            return None
        model = self._model()
        if model is None:
            return WholeSight(
                name=read.whole.name, num_pages=read.whole.num_pages, cost=None, kv_bytes=0
            )
        params = self._settings().sampling
        if conversation_id is not None:
            try:
                found = await self._conversations.get(conversation_id)
            except NotFound:
                return None
            params = with_changes(params, found.sampling)
        cost = await cost_of(model, read, params.max_tokens)
        return WholeSight(
            name=read.whole.name,
            num_pages=read.whole.num_pages,
            cost=cost,
            kv_bytes=cost.num_tokens * model.loaded.info.kv_bytes_per_token,
        )

    async def saw(self, answer_id: str) -> Sight:
        """The prompt of an answer, built anew. Raises NotFound, and what a template refuses."""
        path = await self._conversations.path(answer_id)
        answer = path[-1]
        if answer.role is not Role.ASSISTANT:
            raise UsageError("Only an answer was made from a prompt: choose one.")
        if answer.grounds is not None and not answer.grounds.is_found:
            raise UsageError(
                "No model was asked for this answer, because too little was found in the documents:"
                " choose another one."
            )
        if answer.grounds is not None and answer.grounds.is_summary:
            raise UsageError(
                "This summary was made of many prompts, one for each section of its document:"
                " choose another answer."
            )
        model = self._model()
        if model is None:
            raise UsageError("The model is not loaded yet: ask again in a moment.")
        conversation = replace(
            await self._conversations.get(answer.conversation_id),
            answer_form=answer.made_in.form if answer.made_in else None,
        )
        if answer.grounds is not None and answer.grounds.whole is not None and self._answering:
            # Where the file has gone the prompt is another one, which is said.
            with suppress(UsageError):
                reading = await held_reading(answer.grounds, self._answering())
                conversation = reading.sent(conversation)
        seen = answer.seen
        # The summary may stand with an earlier answer.
        known = left_out_before(path) if seen.digest else seen
        draft = Draft(model, conversation, path[:-1], grounds=answer.grounds)
        token_ids = await draft.token_ids(seen.first_id, known.summary)
        return Sight(
            answer=answer,
            stretches=await asyncio.to_thread(_stretches, model.loaded.tokenizer, token_ids),
            num_tokens=len(token_ids),
            has_summary=bool(known.summary),
            doubt=_doubt(answer, model.name, prompt_digest(token_ids)),
        )

    async def _num_used(self, model: ChatModel, conversation: Conversation) -> int:
        """But for a document that is read whole. From the newest answer, which knows; otherwise
        everything is counted."""
        conversation_id = conversation.conversation_id
        for message in reversed(await self._conversations.messages(conversation_id, limit=2)):
            if message.seen.num_tokens and message.model == model.name:
                size = await asyncio.to_thread(message_size, model, message)
                num_used = message.seen.num_tokens + size
                # What stood before this message does not before the next one, or is counted anew.
                return num_used - (message.grounds.num_tokens if message.grounds else 0)
        path = await self._conversations.messages(conversation_id)
        return await _counted(model, conversation, path)

    async def _num_whole(
        self, model: ChatModel, documents: Scope | None, max_answer_tokens: int
    ) -> int:
        """The tokens of the document that the next message has before it."""
        if documents is None or not documents.as_whole or self._answering is None:
            return 0
        read = await self._answering().whole(documents)
        if read is None:
            return 0
        cost = await cost_of(model, read, max_answer_tokens)
        return cost.num_tokens if cost.fits else 0


async def _counted(model: ChatModel, conversation: Conversation, path: Sequence[Message]) -> int:
    """The tokens of a prompt with hardly anything typed, the template's own included."""
    held = left_out_before(path)
    draft = Draft(model, conversation, path, "?")
    return len(await draft.token_ids(held.first_id, held.summary))


def _doubt(answer: Message, model_name: str, digest: str) -> str:
    if answer.seen.digest == digest:
        return ""
    today = "what follows is how it would be asked today"
    if not answer.seen.digest:
        return f"What this answer was made from was not recorded; {today}."
    if answer.model != model_name:
        return (
            f"This answer was written by {answer.model}, and {model_name} is loaded, which reads"
            f" other tokens; {today}."
        )
    return (
        "The exact prompt can no longer be built, because the system prompt, the examples, the"
        f" model's file, its chat template or the file asked about has changed since; {today}."
    )


def _size(tokenizer: Tokenizer, text: str) -> int:
    counted = text[:LONGEST_COUNTED]
    num_tokens = len(tokenizer.encode(counted)) if counted else 0
    return num_tokens * len(text) // len(counted) if counted else 0


def _stretches(tokenizer: Tokenizer, token_ids: Sequence[int]) -> tuple[Stretch, ...]:
    """The prompt as text, with its control tokens apart."""
    controls = {token.token_id: token.text for token in tokenizer.control_tokens.values()}
    stretches: list[Stretch] = []
    pending = b""
    num_places = 0
    for token_id, following in zip(token_ids, [*token_ids[1:], 0], strict=True):
        if token_id < 0:
            num_places += 1
            if following >= 0:
                pending += f"[{num_places:,} places of a picture or a sound]".encode()
                num_places = 0
            continue
        if (control := controls.get(token_id)) is None:
            pending += tokenizer.token_bytes(token_id)
            continue
        if pending:
            stretches.append(Stretch(pending.decode(errors="replace"), False))
        stretches.append(Stretch(control, True))
        pending = b""
    if pending:
        stretches.append(Stretch(pending.decode(errors="replace"), False))
    return tuple(stretches)
