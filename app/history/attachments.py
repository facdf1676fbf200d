"""The pictures and sounds of messages: told of with each message, and read when they are needed.

The statements work within the transaction of their caller.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlite_utils import Database as Tables

from app.chat.message import Message
from app.history.database import Database
from app.history.rows import storable
from app.media.attachment import Attachment
from engine.errors import NotFound
from engine.media import MediaKind

_FACTS = "seq, message_id, kind, name, media_type, width, height, digest, preview"


def insert_attachments(
    tables: Tables, message_id: str, attachments: Iterable[tuple[Attachment, bytes]]
) -> None:
    """Each with what it holds."""
    tables.table("attachment").insert_all(
        {
            "message_id": message_id,
            "kind": each.kind.value,
            "name": storable(each.name),
            "media_type": each.media_type,
            "width": each.width,
            "height": each.height,
            "digest": each.digest,
            "preview": each.preview,
            "content": content,
        }
        for each, content in attachments
    )


def with_attachments(
    tables: Tables, messages: Sequence[Message], database: Database
) -> list[Message]:
    """The messages with what was sent with them; the content is read from `database` later on."""
    ids = json.dumps([each.message_id for each in messages])
    rows = tables.query(
        f"select {_FACTS} from attachment"
        " where message_id in (select value from json_each(?)) order by seq",
        [ids],
    )
    found: dict[str, list[Attachment]] = {}
    for row in rows:
        read = _reader(database, row["seq"])
        found.setdefault(row["message_id"], []).append(_attachment(row, read))
    if not found:
        return list(messages)
    return [replace(each, attachments=tuple(found.get(each.message_id, ()))) for each in messages]


def contents_of(tables: Tables, message_id: str) -> list[bytes]:
    """What the attachments of a message hold, in their order."""
    rows = tables.query(
        "select content from attachment where message_id = ? order by seq", [message_id]
    )
    return [row["content"] for row in rows]


def _attachment(row: Mapping[str, Any], read: Callable[[], bytes]) -> Attachment:
    return Attachment(
        kind=MediaKind(row["kind"]),
        name=row["name"],
        media_type=row["media_type"],
        width=row["width"],
        height=row["height"],
        digest=row["digest"],
        preview=row["preview"],
        read=read,
    )


def _reader(database: Database, seq: int) -> Callable[[], bytes]:
    def content(tables: Tables) -> bytes:
        row = tables.execute("select content from attachment where seq = ?", [seq]).fetchone()
        if row is None:
            raise NotFound("This picture is gone: its conversation may have been deleted.")
        return bytes(row[0])

    return lambda: database.run_sync(content)
