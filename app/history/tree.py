"""A conversation with its whole tree of messages, as a value and as JSON that may be foreign."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from app.chat.answer_form import AnswerForm, MadeIn
from app.chat.example import Example, examples_as_json, examples_from_json
from app.chat.likelihoods import Likelihoods
from app.chat.message import Conversation, Message, MessageState, Overflow, Role, Seen
from app.documents.grounds import Grounds
from app.documents.scope import Scope
from app.history.attachment_file import attachment_as_json, attachment_from_json
from app.history.rows import bytes_from_ids, json_text, seen_as_json, storable
from app.media.attachment import Attachment
from engine.errors import HistoryError, InvalidParams, UsageError
from engine.metrics import Timings
from engine.sampling_params import SamplingParams, with_changes

E = TypeVar("E", bound=Enum)
F = TypeVar("F", AnswerForm, MadeIn, Scope, Grounds)

LATEST = 1e11
"""Seconds since 1970 until the year 5138; much later ones are no dates any more."""
LARGEST_FIGURE = 1e15
"""Milliseconds or tokens; no answer has cost that much."""
_KINDS = {str: "text", bool: "yes or no", int: "figure", float: "figure"}


@dataclass(frozen=True, slots=True)
class Tree:
    """`messages` stand in order of creation, so a parent always comes before its children."""

    conversation: Conversation
    messages: tuple[Message, ...]

    def as_json(self) -> dict[str, Any]:
        conversation = self.conversation
        return {
            "id": conversation.conversation_id,
            "title": conversation.title,
            "created_at": conversation.created_at,
            "updated_at": conversation.updated_at,
            "system_prompt": conversation.system_prompt,
            "sampling": dict(conversation.sampling),
            "active_leaf_id": conversation.active_leaf_id,
            "overflow": conversation.overflow.value,
            **_given("answer_form", conversation.answer_form),
            **(
                {"examples": examples_as_json(conversation.examples)}
                if conversation.examples
                else {}
            ),
            **_given("documents", conversation.documents),
            "messages": [message_as_json(message) for message in self.messages],
        }


def unfit(reason: str) -> HistoryError:
    """Why a file is not taken in, and what to do."""
    return HistoryError(
        f"This file cannot be imported, because {reason}; nothing was changed: choose a file that"
        " was exported here."
    )


def read_tree(found: object, name: str) -> Tree:
    """The tree that stands in a JSON value; `name` is what a complaint calls it.

    What is not given takes its default, what is not known is passed over.
    """
    fields = _Fields(found, name)
    conversation_id = fields.identifier("id")
    listed = fields.found.get("messages", [])
    if not isinstance(listed, list):
        raise unfit(f"`messages` of {name} is not a list")
    messages: dict[str, Message] = {}
    for number, each in enumerate(listed, start=1):
        message = _read_message(_Fields(each, f"message {number} of {name}"), conversation_id)
        if message.message_id in messages:
            raise unfit(f"two messages of {name} have the id {message.message_id}")
        if message.parent_id is not None and message.parent_id not in messages:
            raise unfit(f"the parent of message {number} of {name} does not stand before it")
        messages[message.message_id] = message
    leaf = fields.optional_identifier("active_leaf_id")
    if leaf is not None and leaf not in messages:
        raise unfit(f"the active message of {name} is not among its messages")
    if leaf is None and messages:
        # Without it nothing would be shown; the newest message is never a parent.
        leaf = list(messages)[-1]
    created_at = fields.time("created_at")
    conversation = Conversation(
        conversation_id=conversation_id,
        title=fields.text("title"),
        created_at=created_at,
        updated_at=fields.time("updated_at", created_at),
        system_prompt=fields.text("system_prompt"),
        sampling=fields.sampling("sampling"),
        active_leaf_id=leaf,
        overflow=fields.member("overflow", Overflow, Overflow.ASK),
        answer_form=fields.value("answer_form", AnswerForm),
        examples=fields.examples("examples"),
        documents=fields.value("documents", Scope),
    )
    return Tree(conversation, tuple(messages.values()))


def message_as_json(message: Message) -> dict[str, Any]:
    return {
        "id": message.message_id,
        "parent_id": message.parent_id,
        "role": message.role.value,
        "content": message.content,
        "thinking": message.thinking,
        "state": message.state.value,
        "finish_reason": message.finish_reason,
        "notice": message.notice,
        "model": message.model,
        "token_ids": list(message.token_ids),
        "timings": dict(message.timings),
        "seen": seen_as_json(message.seen),
        **_given("made_in", message.made_in),
        **_given("likelihoods", message.likelihoods),
        **_given("grounds", message.grounds),
        **(
            {"attachments": [attachment_as_json(each) for each in message.attachments]}
            if message.attachments
            else {}
        ),
        "created_at": message.created_at,
    }


def _given(
    key: str, value: AnswerForm | MadeIn | Likelihoods | Scope | Grounds | None
) -> dict[str, Any]:
    return {} if value is None else {key: value.as_json()}


def _read_message(fields: "_Fields", conversation_id: str) -> Message:
    state = fields.member("state", MessageState, MessageState.DONE)
    return Message(
        message_id=fields.identifier("id"),
        conversation_id=conversation_id,
        parent_id=fields.optional_identifier("parent_id"),
        role=fields.member("role", Role),
        content=fields.text("content"),
        created_at=fields.time("created_at"),
        thinking=fields.text("thinking"),
        # Nobody goes on writing an answer that arrives in a file.
        state=MessageState.INTERRUPTED if state is MessageState.STREAMING else state,
        finish_reason=fields.text("finish_reason"),
        notice=fields.text("notice"),
        model=fields.text("model"),
        token_ids=fields.token_ids("token_ids"),
        timings=fields.timings("timings"),
        seen=fields.seen("seen"),
        made_in=fields.value("made_in", MadeIn),
        likelihoods=fields.likelihoods(
            "likelihoods", num_tokens=len(fields.token_ids("token_ids"))
        ),
        attachments=fields.attachments("attachments"),
        grounds=fields.grounds("grounds", fields.text("content")),
    )


class _Fields:
    """The fields of one JSON object; each is of the kind that is asked for, or refused."""

    def __init__(self, found: object, name: str) -> None:
        if not isinstance(found, Mapping):
            raise unfit(f"{name} is not an object")
        self.found: Mapping[str, Any] = found
        self._name = name

    def _wrong(self, key: str, kind: str) -> HistoryError:
        return unfit(f"`{key}` of {self._name} is {kind}")

    def text(self, key: str) -> str:
        value = self.found.get(key, "")
        if not isinstance(value, str):
            raise self._wrong(key, "not a text")
        return storable(value)

    def identifier(self, key: str) -> str:
        value = self.text(key)
        if not value:
            raise self._wrong(key, "missing")
        return value

    def optional_identifier(self, key: str) -> str | None:
        return None if self.found.get(key) is None else self.identifier(key)

    def time(self, key: str, default: float = 0.0) -> float:
        value = self.found.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "not a number")
        try:
            exact = float(value)
        except OverflowError:
            exact = math.inf
        if not math.isfinite(exact):
            raise self._wrong(key, "not a finite number")
        if not 0 <= exact < LATEST:
            raise self._wrong(key, "not a time in seconds since 1970")
        return exact

    def mapping(self, key: str) -> Mapping[str, Any]:
        value = self.found.get(key, {})
        if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
            raise self._wrong(key, "not an object")
        try:
            json_text(value)
        except (TypeError, ValueError, RecursionError):
            raise self._wrong(key, "not plain JSON") from None
        return value

    def sampling(self, key: str) -> Mapping[str, Any]:
        """Controls with values that are possible, or the conversation could not be opened."""
        known = {field.name for field in dataclasses.fields(SamplingParams)}
        value = {name: each for name, each in self.mapping(key).items() if name in known}
        try:
            with_changes(SamplingParams(), value)
        except InvalidParams as error:
            raise self._wrong(key, f"not possible ({str(error).rstrip('.')})") from None
        return value

    def timings(self, key: str) -> Mapping[str, Any]:
        """Figures that can be shown; what is no figure of ours is passed over."""
        value = self.mapping(key)
        known = [each for each in dataclasses.fields(Timings) if each.name in value]
        for each in known:
            found = value[each.name]
            kind = type(each.default)
            is_right = type(found) is kind if kind in (str, bool) else _is_figure(found)
            if not is_right:
                raise self._wrong(key, f"not possible ({each.name} is no {_KINDS[kind]})")
        return {each.name: value[each.name] for each in known}

    def seen(self, key: str) -> Seen:
        """What is not given is unknown."""
        inner = _Fields(self.found.get(key, {}), f"`{key}` of {self._name}")
        num_tokens = inner.found.get("num_tokens", 0)
        if type(num_tokens) is not int or not _is_figure(num_tokens):
            raise inner._wrong("num_tokens", "no number of tokens")
        return Seen(
            num_tokens=num_tokens,
            digest=inner.text("digest"),
            first_id=inner.text("first_id"),
            summary=inner.text("summary"),
        )

    def value(self, key: str, kind: type[F]) -> F | None:
        """One that is written as JSON, such as a form; None: there is none."""
        if not self.found.get(key):
            return None
        try:
            value = self.mapping(key)
            return kind.from_json(json.loads(storable(json.dumps(value, ensure_ascii=False))))
        except ValueError as error:
            raise self._wrong(key, f"not possible ({error})") from None

    def grounds(self, key: str, content: str) -> Grounds | None:
        """Of an answer with this content."""
        value = self.value(key, Grounds)
        try:
            if value is not None:
                value.check_fits(content)
        except ValueError as error:
            raise self._wrong(key, f"not possible ({error})") from None
        return value

    def likelihoods(self, key: str, num_tokens: int) -> Likelihoods | None:
        """One for each token, or none at all."""
        found = self.found.get(key)
        if not found:
            return None
        try:
            value = Likelihoods.from_json(found)
            value.source.encode()
        except (ValueError, RecursionError) as error:
            raise self._wrong(key, f"not possible ({error})") from None
        if len(found) != num_tokens:
            raise self._wrong(key, "not as long as its tokens")
        return value

    def examples(self, key: str) -> tuple[Example, ...]:
        try:
            found = examples_from_json(self.found.get(key, []))
        except UsageError as error:
            raise self._wrong(key, f"not possible ({str(error).rstrip('.')})") from None
        return tuple(Example(storable(each.user), storable(each.assistant)) for each in found)

    def attachments(self, key: str) -> tuple[Attachment, ...]:
        found = self.found.get(key, [])
        if not isinstance(found, list):
            raise self._wrong(key, "not a list")
        try:
            return tuple(attachment_from_json(each) for each in found)
        except ValueError as error:
            raise self._wrong(key, f"not possible ({error})") from None

    def token_ids(self, key: str) -> tuple[int, ...]:
        value = self.found.get(key, [])
        if not isinstance(value, list) or not all(type(each) is int for each in value):
            raise self._wrong(key, "not a list of whole numbers")
        try:
            bytes_from_ids(value)
        except OverflowError:
            raise self._wrong(key, "not a list of token ids") from None
        return tuple(value)

    def member(self, key: str, kind: type[E], default: E | None = None) -> E:
        if key not in self.found and default is not None:
            return default
        try:
            return kind(self.found.get(key))
        except ValueError:
            known = ", ".join(str(each.value) for each in kind)
            raise self._wrong(key, f"none of {known}") from None


def _is_figure(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < LARGEST_FIGURE  # type: ignore[operator]
