"""A document that is read whole, before everything else: whether it fits, and how it is sent.

    system turn   | the document | the system prompt |
                  |<- the same tokens in every conversation about it: their KV is read once

Instructions come after it, so that conversations with other system prompts share it, too.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.chat.belonging import belonging_of, document_source
from app.chat.chat_model import PROBES, ChatModel
from app.chat.context import context_for, larger_context, prompt_limit
from app.chat.draft import Draft
from app.chat.message import Conversation, Role
from app.chat.turns import Turn
from app.documents.grounds import Grounds
from app.documents.quoting import quoted_whole
from app.documents.scope import Scope
from app.documents.whole_text import WholeText
from app.visible import visible
from engine.errors import UsageError
from engine.kv.segment import Belonging

if TYPE_CHECKING:
    from app.documents.answering import Answering

ROOM_TO_ASK = 400
"""Tokens that a question, and what was said before it, must have beside a document."""
LOOK_S = 0.05
MOST_COUNTED = 100
NOT_ONE = (
    "Only a single document can be read from its beginning to its end, and more than one was"
    " chosen, so they were searched."
)


GONE = (
    "The file that this answer was written about has changed, or left the library: ask anew instead"
    " of going on from it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What reading a document whole takes, in tokens: it has `num_tokens`, and `most` can be held
    beside a question and its answer. The smallest context in which it fits has `needed`, and the
    model was made for `trained`. `larger` is the size of a context to choose, or None: the model
    was not made for that much."""

    num_tokens: int
    most: int
    needed: int
    trained: int
    larger: int | None

    @property
    def fits(self) -> bool:
        return self.num_tokens <= self.most


async def cost_of(model: ChatModel, read: WholeText, max_answer_tokens: int) -> Cost:
    num_tokens = await _num_tokens(model, read)
    max_request = model.loaded.engine.max_request_tokens
    most = prompt_limit(max_request, max_answer_tokens) - ROOM_TO_ASK
    needed = context_for(num_tokens + ROOM_TO_ASK, max_answer_tokens)
    trained = model.loaded.info.trained_context
    return Cost(
        num_tokens=num_tokens,
        most=most,
        needed=needed,
        trained=trained,
        larger=larger_context(max_request, trained, needed),
    )


async def _num_tokens(model: ChatModel, read: WholeText) -> int:
    """Counted once: a long one takes long, and is asked for again with every pause in typing."""
    known = model.whole_sizes.get(read.whole.fence)
    if known is not None:
        return known

    def count() -> int:
        return len(model.loaded.tokenizer.encode(lead_of(read, has_marks=True)))

    if len(model.whole_sizes) >= MOST_COUNTED:
        model.whole_sizes.clear()
    size = model.whole_sizes[read.whole.fence] = await asyncio.to_thread(count)
    return size


def too_long(read: WholeText, cost: Cost) -> str:
    """Why it is searched instead."""
    return (
        f"{visible(read.whole.name)} has {cost.num_tokens:,} tokens, and {max(cost.most, 0):,} fit"
        f" beside a question and its answer, so it was searched. {room_for(cost)}"
    )


def room_for(cost: Cost) -> str:
    """What would hold a document that is too long."""
    if cost.larger is not None:
        return f"A context of {cost.larger:,} tokens would hold it (Settings, Memory)."
    return (
        f"It needs a context of {cost.needed:,} tokens, and this model was made for"
        f" {cost.trained:,}: to have it read whole, choose a model that was made for more."
    )


def lead_of(read: WholeText, *, has_marks: bool) -> str:
    return quoted_whole(read.parts, read.whole.fence, with_marks=has_marks)


@dataclass(frozen=True, slots=True)
class Reading:
    """A document that is read whole for an answer, which stands on it."""

    read: WholeText
    grounds: Grounds

    def sent(self, conversation: Conversation) -> Conversation:
        """The conversation as it is sent: its system prompt stands behind the document."""
        return with_whole(conversation, self.read)

    async def applied(self, draft: Draft) -> tuple[Draft, Belonging]:
        """The draft as it is sent, and what its request belongs to."""
        sent = self.sent(draft.conversation)
        return replace(draft, conversation=sent), await self._belonging(draft.model, sent)

    async def _belonging(self, model: ChatModel, sent: Conversation) -> Belonging:
        # Whatever comes after the document, and in whichever form the answer is to be.
        leads = [lead_of(self.read, has_marks=has_marks) for has_marks in (True, False)]
        systems = [sent.system_prompt, *leads]
        prompts = [
            await model.prompt([Turn(Role.USER, PROBES[0])], system, sent.created_at)
            for system in systems
        ]
        return replace(
            belonging_of(sent.conversation_id),
            source=document_source(self.read.whole.sha256),
            num_source_tokens=len(os.path.commonprefix(prompts)),
        )


async def reading_of(
    draft: Draft, scope: Scope, max_answer_tokens: int, answering: "Answering"
) -> Reading | str:
    """For the question of a draft. Or why the document is searched instead; empty where nothing
    can be, which the search says."""
    seen = await answering.whole(scope)
    if seen is None:
        return NOT_ONE if await answering.num_documents(scope) else ""
    cost = await cost_of(draft.model, seen, max_answer_tokens)
    if not cost.fits:
        return too_long(seen, cost)
    read = await answering.mark_whole(seen)
    if read is None:
        return ""
    return Reading(read, grounds_of_whole(read, scope, draft.question, cost.num_tokens))


def grounds_of_whole(
    read: WholeText, scope: Scope, question: str = "", num_tokens: int = 0
) -> Grounds:
    """What an answer stands on that has all of a document, which is this much of its prompt."""
    return Grounds(
        scope=scope,
        searched=question,
        num_documents=1,
        is_found=True,
        fence=read.whole.fence,
        num_tokens=num_tokens,
        whole=read.whole,
    )


async def held_reading(held: Grounds, answering: "Answering") -> Reading:
    """What an answer had before it. Raises UsageError where that is gone."""
    assert held.whole is not None
    read = await answering.whole_with(held.whole.sha256)
    if read is None or read.whole.fence != held.whole.fence:
        raise UsageError(GONE)
    return Reading(read, held.unchecked())


def with_whole(conversation: Conversation, read: WholeText) -> Conversation:
    lead = lead_of(read, has_marks=conversation.answer_form is None)
    both = filter(None, (lead, conversation.system_prompt.strip()))
    return replace(conversation, system_prompt="\n\n".join(both))


class Readers:
    """Who reads a document whole now: another one waits until it is held, and then need not.

    Owned by the event loop.
    """

    def __init__(self) -> None:
        self._reading: set[str] = set()

    @asynccontextmanager
    async def alone(
        self, belonging: Belonging, wait: Callable[[], bool]
    ) -> AsyncIterator[Callable[[int], None]]:
        """Gives what is to be told how much of its prompt was read. It is waited for as long as
        `wait` says."""
        source = belonging.source
        while source in self._reading and wait():
            await asyncio.sleep(LOOK_S)
        is_first = bool(source) and source not in self._reading
        if is_first:
            self._reading.add(source)

        def done(num_read: int) -> None:
            if is_first and num_read >= belonging.num_source_tokens:
                self._reading.discard(source)

        try:
            yield done
        finally:
            done(belonging.num_source_tokens)
