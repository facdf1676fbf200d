"""Where something was said: the query is literal text, found as a part of words, too."""

import re
from dataclasses import dataclass
from itertools import product
from typing import Any

from sqlite_utils import Database as Tables

from app.chat.message import Conversation
from app.history.database import Database
from app.history.rows import conversation_from_row, storable

# The index holds pieces of three characters; shorter queries read the texts.
SHORTEST_INDEXED = 3
NUM_BEFORE = 40
NUM_AFTER = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A conversation, and its title (`message_id` is None) or a message that holds the query.

    `snippet[match_start:match_end]` is the first place of it. The snippet is plain text on one
    line, with an ellipsis where the text goes on.
    """

    conversation: Conversation
    message_id: str | None
    snippet: str
    match_start: int
    match_end: int


async def search(database: Database, query: str, limit: int = 50) -> list[Hit]:
    """Every conversation once, where it is found best: titles first, then the newest messages.

    Upper and lower case are the same. An answer is found when it has ended, and nothing of a
    deleted conversation.
    """
    # SQLite takes a query only up to a zero character.
    literal = storable(query).replace("\0", "").strip()
    if not literal or limit <= 0:
        return []
    return await database.run(lambda tables: _search(tables, literal, limit))


def _search(tables: Tables, literal: str, limit: int) -> list[Hit]:
    condition, params = _holds(literal, "conversation", "title")
    titles = tables.query(
        f"""
        select *, title as text, null as message_id from conversation
        where deleted_at is null and {condition}
        order by updated_at desc, seq desc limit :limit
        """,
        {**params, "limit": limit},
    )
    hits = {row["id"]: _hit(row, literal) for row in titles}
    condition, params = _holds(literal, "message", "content")
    messages = tables.query(
        f"""
        select conversation.*, content as text, message.id as message_id,
            max(message.seq) as newest
        from written_message as message
        join conversation on conversation.id = message.conversation_id
        where deleted_at is null and {condition}
        group by conversation.seq order by newest desc limit :limit
        """,
        {**params, "limit": limit},
    )
    for row in messages:
        hits.setdefault(row["id"], _hit(row, literal))
    return list(hits.values())[:limit]


def _holds(literal: str, table: str, column: str) -> tuple[str, dict[str, Any]]:
    """The SQL condition that a column holds the text, and its parameters."""
    if len(literal) >= SHORTEST_INDEXED:
        # Between quotes nothing is an operator.
        phrase = '"' + literal.replace('"', '""') + '"'
        index = f"{table}_fts"
        found = f"select rowid from {index} where {index} match :phrase"
        return f"{table}.seq in ({found})", {"phrase": phrase}
    params = {}
    # LIKE knows upper and lower case of ASCII only, so other letters come in both.
    for number, letters in enumerate(sorted(set(product(*map(_cases, literal))))):
        params[f"like{number}"] = "%" + re.sub(r"([%_\\])", r"\\\1", "".join(letters)) + "%"
    likes = (f"{table}.{column} like :{name} escape '\\'" for name in params)
    return f"({' or '.join(likes)})", params


def _cases(letter: str) -> set[str]:
    return {letter} if letter.isascii() else {letter, letter.lower(), letter.upper()}


def _hit(row: dict[str, Any], literal: str) -> Hit:
    text: str = row["text"]
    found = re.search(re.escape(literal), text, re.IGNORECASE)
    # The index and `re` may differ about a rare letter; then the snippet is the beginning.
    first, last = found.span() if found else (0, 0)
    start, end = max(0, first - NUM_BEFORE), min(len(text), last + NUM_AFTER)
    before = ("…" if start else "") + _one_line(text[start:first])
    match = _one_line(text[first:last])
    after = _one_line(text[last:end]) + ("…" if end < len(text) else "")
    return Hit(
        conversation=conversation_from_row(row),
        message_id=row["message_id"],
        snippet=before + match + after,
        match_start=len(before),
        match_end=len(before) + len(match),
    )


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)
