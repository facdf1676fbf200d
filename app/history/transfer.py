"""Conversations as one JSON document, and back: whole trees, nothing lost, nothing overwritten."""

import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlite_utils import Database as Tables

from app.chat.belonging import is_reserved
from app.chat.message import Message, MessageState
from app.history.attachments import contents_of, insert_attachments, with_attachments
from app.history.database import Database
from app.history.rows import (
    conversation_from_row,
    message_from_row,
    row_from_conversation,
    row_from_message,
)
from app.history.statements import unknown_conversation
from app.history.tree import Tree, read_tree, unfit
from app.media.attachment import Attachment
from engine.errors import HistoryError, NotFound

VERSION = 1
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What became of a document's conversations; the ids are those they have here.

    `imported` kept their ids, `copied` took new ones because the old stand for something else
    here or cannot be ids here, `skipped` were here already, word for word.
    """

    imported: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


async def export(database: Database, ids: Sequence[str] | None = None) -> dict[str, Any]:
    """A document of these conversations, or of all that are not deleted.

    An answer that is being written is exported as interrupted.
    """

    def read(tables: Tables) -> list[dict[str, Any]]:
        wanted = _all_ids(tables) if ids is None else ids
        return [_tree(tables, database, each).as_json() for each in wanted]

    return {
        "inglenook": VERSION,
        "exported_at": time.time(),
        "conversations": await database.run(read),
    }


async def import_(database: Database, document: object) -> ImportReport:
    """Take in all conversations of a document, or refuse it and change nothing.

    One that is here but deleted comes back if it is the same.
    """
    trees = _read_document(document)
    return await database.run(lambda tables: _import(tables, database, trees))


def _read_document(document: object) -> list[Tree]:
    if not isinstance(document, dict) or "inglenook" not in document:
        raise unfit("it is no export of Inglenook")
    found = document["inglenook"]
    if type(found) is not int or found < 1:
        raise unfit(f"its version {found!r} is no number")
    if found > VERSION:
        raise HistoryError(
            f"This file was exported by a newer version of the app (form {found}; this version"
            f" reads up to {VERSION}): update the app to import it."
        )
    listed = document.get("conversations")
    if not isinstance(listed, list):
        raise unfit("it has no list of conversations")
    return [read_tree(each, f"conversation {number}") for number, each in enumerate(listed, 1)]


def _import(tables: Tables, database: Database, trees: Sequence[Tree]) -> ImportReport:
    imported, copied, skipped = [], [], []
    for tree in trees:
        conversation_id = tree.conversation.conversation_id
        if _is_here(tables, database, tree):
            tables.execute(
                "update conversation set deleted_at = null where id = ?", [conversation_id]
            )
            skipped.append(conversation_id)
        elif _has_foreign_ids(tree) or _is_taken(tables, tree):
            copy = _with_new_ids(tree)
            _insert(tables, copy)
            copied.append(copy.conversation.conversation_id)
        else:
            _insert(tables, tree)
            imported.append(conversation_id)
    return ImportReport(imported=tuple(imported), copied=tuple(copied), skipped=tuple(skipped))


def _is_here(tables: Tables, database: Database, tree: Tree) -> bool:
    try:
        here = _tree(tables, database, tree.conversation.conversation_id, with_deleted=True)
    except NotFound:
        return False
    return here == tree


def _has_foreign_ids(tree: Tree) -> bool:
    """Ids stand in pages and addresses, so no other signs than those of ours may be in them."""
    ids = (tree.conversation.conversation_id, *(each.message_id for each in tree.messages))
    return not all(map(_ID.fullmatch, ids)) or any(map(is_reserved, ids))


def _is_taken(tables: Tables, tree: Tree) -> bool:
    conversation = tree.conversation.conversation_id
    if any(tables.query("select 1 from conversation where id = ?", [conversation])):
        return True
    return any(
        any(tables.query("select 1 from message where id = ?", [message.message_id]))
        for message in tree.messages
    )


def _with_new_ids(tree: Tree) -> Tree:
    conversation_id = uuid.uuid4().hex
    new = {message.message_id: uuid.uuid4().hex for message in tree.messages}
    leaf, messages = tree.conversation.active_leaf_id, tree.messages
    return Tree(
        replace(
            tree.conversation,
            conversation_id=conversation_id,
            active_leaf_id=None if leaf is None else new[leaf],
        ),
        tuple(
            replace(
                message,
                message_id=new[message.message_id],
                conversation_id=conversation_id,
                parent_id=None if message.parent_id is None else new[message.parent_id],
                seen=replace(message.seen, first_id=new.get(message.seen.first_id, "")),
            )
            for message in messages
        ),
    )


def _insert(tables: Tables, tree: Tree) -> None:
    """The content of attachments that came in a file is in memory, so this thread may read it."""
    tables.table("conversation").insert(row_from_conversation(tree.conversation))
    depths: dict[str | None, int] = {None: 0}
    rows = []
    for message in tree.messages:
        depths[message.message_id] = depths[message.parent_id] + 1
        rows.append({**row_from_message(message), "depth": depths[message.message_id]})
    tables.table("message").insert_all(rows)
    for message in tree.messages:
        held = [(each, each.read()) for each in message.attachments]
        insert_attachments(tables, message.message_id, held)


def _all_ids(tables: Tables) -> list[str]:
    rows = tables.query("select id from conversation where deleted_at is null order by seq")
    return [row["id"] for row in rows]


def _tree(
    tables: Tables, database: Database, conversation_id: str, with_deleted: bool = False
) -> Tree:
    """Its attachments are in memory: the store thread, which makes a file of them, cannot ask
    itself for them."""
    rows = list(
        tables.query(
            "select * from conversation where id = ? and (deleted_at is null or ?)",
            [conversation_id, with_deleted],
        )
    )
    if not rows:
        raise unknown_conversation(conversation_id)
    messages = [
        message_from_row(row)
        for row in tables.query(
            "select * from message where conversation_id = ? order by seq", [conversation_id]
        )
    ]
    messages = [
        replace(message, attachments=_in_memory(tables, message))
        for message in with_attachments(tables, messages, database)
    ]
    return Tree(
        conversation_from_row(rows[0]),
        tuple(
            replace(message, state=MessageState.INTERRUPTED)
            if message.state is MessageState.STREAMING
            else message
            for message in messages
        ),
    )


def _in_memory(tables: Tables, message: Message) -> tuple[Attachment, ...]:
    if not message.attachments:
        return ()
    held = zip(message.attachments, contents_of(tables, message.message_id), strict=True)
    return tuple(_holding(each, content) for each, content in held)


def _holding(attachment: Attachment, content: bytes) -> Attachment:
    return replace(attachment, read=lambda: content)
