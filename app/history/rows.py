"""Rows of the history's tables, and the values they stand for."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from app.chat.answer_form import AnswerForm, MadeIn
from app.chat.example import Example, examples_as_json, examples_from_json
from app.chat.likelihoods import Likelihoods
from app.chat.message import Conversation, Message, MessageState, Overflow, Role, Seen
from app.documents.grounds import Grounds
from app.documents.scope import Scope

logger = logging.getLogger(__name__)

T = TypeVar("T")


def conversation_from_row(row: Mapping[str, Any]) -> Conversation:
    return Conversation(
        conversation_id=row["id"],
        title=row["title"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        system_prompt=row["system_prompt"],
        sampling=json.loads(row["sampling"]),
        active_leaf_id=row["active_leaf_id"],
        overflow=Overflow(row["overflow"]),
        answer_form=form_from_text(row["answer_form"]),
        examples=examples_from_json(json.loads(row["examples"])),
        documents=_understood(Scope.from_json, row["documents"]),
    )


def row_from_conversation(value: Conversation) -> dict[str, Any]:
    return {
        "id": value.conversation_id,
        "title": storable(value.title),
        "created_at": value.created_at,
        "updated_at": value.updated_at,
        "system_prompt": storable(value.system_prompt),
        "sampling": json_text(value.sampling),
        "active_leaf_id": value.active_leaf_id,
        "overflow": value.overflow.value,
        "answer_form": form_as_text(value.answer_form),
        "examples": examples_as_text(value.examples),
        "documents": documents_as_text(value.documents),
    }


def message_from_row(row: Mapping[str, Any]) -> Message:
    return Message(
        message_id=row["id"],
        conversation_id=row["conversation_id"],
        parent_id=row["parent_id"],
        role=Role(row["role"]),
        content=row["content"],
        created_at=row["created_at"],
        thinking=row["thinking"],
        state=MessageState(row["state"]),
        finish_reason=row["finish_reason"],
        notice=row["notice"],
        model=row["model"],
        token_ids=ids_from_bytes(row["token_ids"]),
        timings=json.loads(row["timings"]),
        seen=Seen(**json.loads(row["seen"])),
        made_in=_understood(MadeIn.from_json, row["made_in"]),
        likelihoods=Likelihoods(row["likelihoods"]) if row["likelihoods"] else None,
        grounds=_understood(Grounds.from_json, row["grounds"]),
    )


def row_from_message(value: Message) -> dict[str, Any]:
    """Every column but `seq` and `depth`, which the tree decides."""
    return {
        "id": value.message_id,
        "conversation_id": value.conversation_id,
        "parent_id": value.parent_id,
        "role": value.role.value,
        "created_at": value.created_at,
        **writing_from_message(value),
    }


def writing_from_message(value: Message) -> dict[str, Any]:
    """The columns that change while an answer is written."""
    return {
        "content": storable(value.content),
        "thinking": storable(value.thinking),
        "state": value.state.value,
        "finish_reason": value.finish_reason,
        "notice": storable(value.notice),
        "model": storable(value.model),
        "token_ids": bytes_from_ids(value.token_ids),
        "timings": json_text(value.timings),
        "seen": json_text(seen_as_json(value.seen)),
        "made_in": json_text({} if value.made_in is None else value.made_in.as_json()),
        "likelihoods": "" if value.likelihoods is None else value.likelihoods.source,
        "grounds": json_text({} if value.grounds is None else value.grounds.as_json()),
    }


def examples_as_text(examples: Sequence[Example]) -> str:
    return json.dumps(examples_as_json(examples))


def form_as_text(form: AnswerForm | None) -> str:
    return json_text({} if form is None else form.as_json())


def documents_as_text(documents: Scope | None) -> str:
    return json_text({} if documents is None else documents.as_json())


def form_from_text(stored: str) -> AnswerForm | None:
    return _understood(AnswerForm.from_json, stored)


def seen_as_json(value: Seen) -> dict[str, Any]:
    """Only what differs from an empty one: most messages saw nothing."""
    return {name: each for name, each in asdict(value).items() if each}


def storable(text: str) -> str:
    """The text, with half characters (lone surrogates, which no file can hold) marked."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def json_text(value: Mapping[str, Any]) -> str:
    # The escapes of `ensure_ascii` let half characters pass unharmed.
    return json.dumps(dict(value), ensure_ascii=True, allow_nan=False)


def bytes_from_ids(token_ids: Iterable[int]) -> bytes:
    return np.asarray(tuple(token_ids), dtype="<i4").tobytes()


def ids_from_bytes(stored: bytes) -> tuple[int, ...]:
    return tuple(np.frombuffer(stored, dtype="<i4").tolist())


def _understood(read: Callable[[object], T], stored: str) -> T | None:
    """None for an empty object, and for what a newer or an older app may have meant: a
    conversation opens whatever is said about its form or its documents."""
    found = json.loads(stored)
    if not found:
        return None
    try:
        return read(found)
    except ValueError as error:
        logger.warning("what is stored is not understood: %s", error)
        return None
