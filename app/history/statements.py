"""What the store thread asks of the history's tables, and how it changes them.

Each function works within the transaction of its caller.
"""

import uuid
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from sqlite_utils import Database as Tables

from app.chat.answer_form import AnswerForm, MadeIn
from app.chat.belonging import TEMPORARY, is_temporary
from app.chat.message import Conversation, Message, MessageState, Role
from app.documents.grounds import Grounds
from app.history.rows import conversation_from_row, message_from_row, row_from_message
from engine.errors import HistoryError, NotFound

# Walked from the leaf up, so that a short piece of a long branch is cheap.
BRANCH = """
    with recursive branch(seq, parent_id, above) as (
        select seq, parent_id, 0 from message where id = :leaf and :limit <> 0
        union all
        select message.seq, message.parent_id, above + 1
        from branch join message on message.id = branch.parent_id
        where :limit < 0 or above + 1 < :limit
    )
    select message.* from branch join message using (seq) order by above desc
"""


class Place(Enum):
    """Where a turn hangs, when it is not below a message that is named."""

    ACTIVE_LEAF = "active leaf"


ACTIVE_LEAF: Final = Place.ACTIVE_LEAF


class Exchange(NamedTuple):
    """What the user said, and the answer that is to be written."""

    user: Message
    answer: Message


def unknown_conversation(conversation_id: str) -> NotFound:
    return NotFound(f"There is no conversation {conversation_id}: it may have been deleted.")


def conversation_of(tables: Tables, conversation_id: str) -> Conversation:
    rows = tables.query(
        "select * from conversation where id = ? and deleted_at is null", [conversation_id]
    )
    for row in rows:
        return conversation_from_row(row)
    raise unknown_conversation(conversation_id)


def conversation_at_rest(tables: Tables, conversation_id: str) -> Conversation:
    """The conversation, unless its active answer is still being written."""
    conversation = conversation_of(tables, conversation_id)
    leaf = conversation.active_leaf_id
    if leaf is not None and message_row(tables, leaf)["state"] == MessageState.STREAMING.value:
        raise HistoryError(
            "An answer is still being written in this conversation: wait for its end or stop it."
        )
    return conversation


def message_row(tables: Tables, message_id: str) -> dict[str, Any]:
    for row in tables.query("select * from message where id = ?", [message_id]):
        return dict(row)
    raise NotFound(f"There is no message {message_id}: it may have been deleted.")


def message_row_in(tables: Tables, conversation_id: str, message_id: str) -> dict[str, Any]:
    row = message_row(tables, message_id)
    if row["conversation_id"] != conversation_id:
        raise NotFound(f"The conversation {conversation_id} has no message {message_id}.")
    return row


def branch(tables: Tables, leaf_id: str | None, limit: int = -1) -> list[Message]:
    """From the root down to this leaf, at most the last `limit` messages (-1: all)."""
    rows = tables.query(BRANCH, {"leaf": leaf_id, "limit": limit})
    return [message_from_row(row) for row in rows]


def newest_below(tables: Tables, message_id: str) -> str:
    """The leaf that was made last under a message, or the message itself."""
    # Children are younger than their parents, so the youngest of all is a leaf.
    (newest,) = tables.query(
        """
        with recursive below(id, seq) as (
            select id, seq from message where id = ?
            union all
            select message.id, message.seq from below
            join message on message.parent_id = below.id
        )
        select id from below order by seq desc limit 1
        """,
        [message_id],
    )
    return str(newest["id"])


def insert_message(
    tables: Tables,
    conversation_id: str,
    parent_id: str | None,
    role: Role,
    content: str,
    now: float,
    state: MessageState = MessageState.DONE,
    made_in: MadeIn | None = None,
    grounds: Grounds | None = None,
) -> Message:
    depth = 1
    if parent_id is not None:
        parent = message_row_in(tables, conversation_id, parent_id)
        if parent["state"] == MessageState.STREAMING.value:
            raise HistoryError("An answer must be complete before something is said after it.")
        depth = parent["depth"] + 1
    message = Message(
        message_id=(TEMPORARY if is_temporary(conversation_id) else "") + uuid.uuid4().hex,
        conversation_id=conversation_id,
        parent_id=parent_id,
        role=role,
        content=content,
        created_at=now,
        state=state,
        made_in=made_in,
        grounds=grounds,
    )
    tables.table("message").insert({**row_from_message(message), "depth": depth})
    return message


def insert_answer(
    tables: Tables,
    user: Message,
    now: float,
    form: AnswerForm | None,
    grounds: Grounds | None = None,
) -> Message:
    """An empty answer to a message of the user, to be written in `form` and on `grounds`; it
    becomes the active leaf."""
    answer = insert_message(
        tables,
        user.conversation_id,
        user.message_id,
        Role.ASSISTANT,
        "",
        now,
        MessageState.STREAMING,
        None if form is None else MadeIn(form),
        grounds,
    )
    tables.execute(
        "update conversation set active_leaf_id = ?, updated_at = ? where id = ?",
        [answer.message_id, now, user.conversation_id],
    )
    return answer


def write_answer(tables: Tables, answer_id: str, columns: Mapping[str, Any]) -> None:
    """Change a running answer; one that has ended stays as it is."""
    assignments = ", ".join(f"{name} = :{name}" for name in columns)
    cursor = tables.execute(
        f"update message set {assignments} where id = :id and state = 'streaming'",
        {**columns, "id": answer_id},
    )
    if not cursor.rowcount:
        message_row(tables, answer_id)
        raise HistoryError("This answer has ended already; what was stored is kept.")


def remove_conversations(tables: Tables, ids: Sequence[str]) -> int:
    """With all their messages; how many there were."""
    num_removed = 0
    for each in ids:
        # One statement for a whole tree: parents and children go together.
        tables.execute("delete from message where conversation_id = ?", [each])
        num_removed += tables.execute("delete from conversation where id = ?", [each]).rowcount
    return num_removed
