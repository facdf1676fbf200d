"""What was said: values only. Storage knows their identity, the engine knows neither."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from app.chat.answer_form import AnswerForm, MadeIn, Outcome
from app.chat.example import Example
from app.chat.likelihoods import Likelihoods
from app.documents.grounds import Grounds
from app.documents.scope import Scope
from app.media.attachment import Attachment


class Role(Enum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class MessageState(Enum):
    """What became of a message."""

    DONE = "done"
    """Complete."""
    STREAMING = "streaming"
    """Being written by a running job."""
    STOPPED = "stopped"
    """The user ended it; what was written is kept."""
    INTERRUPTED = "interrupted"
    """The app ended while it was written; what had been stored is kept."""
    FAILED = "failed"
    """An error ended it; `notice` is the sentence."""


class Overflow(Enum):
    """What becomes of the oldest turns when a conversation outgrows the model's context."""

    ASK = "ask"
    """The user is asked before anything is sent."""
    DROP = "drop"
    """They are left out."""
    SUMMARISE = "summarise"
    """The model's own summary stands for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the prompt of an answer was made of.

    `first_id` is the first message of the user that was sent; empty: nothing was left out.
    `summary` stands for what was left out, in the answer it was made for and in those after it
    with the same `first_id`. `digest` is that of the prompt's `num_tokens` ids, or empty: unknown.
    """

    num_tokens: int = 0
    digest: str = ""
    first_id: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation's tree. `parent_id` is None for a first message.

    `token_ids` are the ids the model generated (without its end token), so that they are never
    tokenized again; they spell thinking and content as the model wrote them.
    `timings` is `engine.metrics.Timings.as_json()` of a finished answer. `made_in` is the form
    that an answer was asked for in. `likelihoods` tell of each of `token_ids` how likely it was,
    where that was asked for. `attachments` are the pictures and sounds that the user sent with it.
    `grounds` are what of the user's files an answer stands on; None: none was asked.
    """

    message_id: str
    conversation_id: str
    parent_id: str | None
    role: Role
    content: str
    created_at: float
    thinking: str = ""
    state: MessageState = MessageState.DONE
    finish_reason: str = ""
    notice: str = ""
    model: str = ""
    token_ids: tuple[int, ...] = ()
    timings: Mapping[str, Any] = field(default_factory=dict)
    seen: Seen = Seen()
    made_in: MadeIn | None = None
    likelihoods: Likelihoods | None = None
    attachments: tuple[Attachment, ...] = ()
    grounds: Grounds | None = None

    @property
    def outcome(self) -> Outcome | None:
        """How it came out in its form; None: it has none, or it is still being written."""
        if self.made_in is None or self.state is MessageState.STREAMING:
            return None
        if self.state is not MessageState.DONE or self.finish_reason == "grammar_incomplete":
            return Outcome.CUT
        if not self.made_in.is_checked:
            return Outcome.WHOLE
        return Outcome.INVALID if self.made_in.fault else Outcome.VALID


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A tree of messages and the choices made for it.

    `active_leaf_id` is the newest message of the branch that is shown. `sampling` holds only the
    controls the user changed here (names of `SamplingParams`). `created_at` is also the
    conversation's frozen clock: a template that asks for today's date gets this one.
    `answer_form` is the form of its next answers; None: they are text. `examples` stand before
    everything that is said in it. `documents` are those that its questions are asked of; None:
    none.
    Times are seconds since the epoch.
    """

    conversation_id: str
    title: str
    created_at: float
    updated_at: float
    system_prompt: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    active_leaf_id: str | None = None
    overflow: Overflow = Overflow.ASK
    answer_form: AnswerForm | None = None
    examples: tuple[Example, ...] = ()
    documents: Scope | None = None

    @property
    def read_whole(self) -> Scope | None:
        """Its documents where their only one is to be read from its beginning to its end. None:
        they are searched, or there are none."""
        return self.documents if self.documents is not None and self.documents.as_whole else None


def unstored(system_prompt: str, examples: Sequence[Example]) -> Conversation:
    """One that begins now, and has no identity yet."""
    now = time.time()
    return Conversation(
        conversation_id="",
        title="",
        created_at=now,
        updated_at=now,
        system_prompt=system_prompt,
        examples=tuple(examples),
    )
