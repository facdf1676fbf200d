"""The vectors in their table: which passages still have none, and what comes and goes.

They are half floats, one row a passage and embedder. Searching goes on with those of the embedder
that is used until another one has them all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlite_utils import Database as Tables

from app.documents.embedding.embedder import Embedder
from app.documents.embedding.language import SAMPLE, language_of
from app.documents.index_facts import count, noted
from app.documents.split import BETWEEN_HEADINGS, Passage, passage_text

NUM_DELETED = "vectors deleted"


class Wanted(NamedTuple):
    """A passage without a vector, and what of it the vector is made from."""

    passage_id: int
    text: str


@dataclass(frozen=True, slots=True)
class Used:
    """The embedder whose vectors are searched."""

    embedder_id: int
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class Progress:
    """`num_passages` are those in languages that the embedder knows; `num_others` are left to the
    text search."""

    num_passages: int
    num_without: int
    num_others: int


def used(tables: Tables) -> Used | None:
    found = tables.execute("select id, facts from embedder where is_used").fetchone()
    return None if found is None else Used(found[0], Embedder.from_json(found[1]))


def take_on(tables: Tables, embedder: Embedder) -> int:
    """Note that vectors are made with it; its id. It is used at once where no other one is."""
    found = tables.execute(
        "select id, facts from embedder where key = ?", [embedder.key]
    ).fetchone()
    if found is None:
        embedder_id = tables.execute(
            "insert into embedder(key, facts) values (?, ?)", [embedder.key, embedder.as_json()]
        ).lastrowid
        assert embedder_id is not None
    else:
        embedder_id, facts = found
        if facts != embedder.as_json():
            # Its file has moved, or its languages are others.
            tables.execute(
                "update embedder set facts = ? where id = ?", [embedder.as_json(), embedder_id]
            )
            _forget_unknown(tables, embedder_id, embedder.languages)
    if used(tables) is None:
        tables.execute("update embedder set is_used = 1 where id = ?", [embedder_id])
    # Of a choice that was given up before it was complete.
    _forget_embedders(tables, "id <> ? and not is_used", [embedder_id])
    return int(embedder_id)


def use_only(tables: Tables, embedder_id: int) -> None:
    """Search with this one from now on, and forget the vectors of all others."""
    _forget_embedders(tables, "id <> ?", [embedder_id])
    tables.execute("update embedder set is_used = 1 where id = ? and not is_used", [embedder_id])


def forget_all(tables: Tables) -> None:
    _forget_embedders(tables, "true", [])


def forget_vectors(tables: Tables, document_id: int) -> None:
    """Those of a document that is about to go, in the transaction of its passages."""
    num = tables.execute(
        "delete from vector where passage_id in (select id from passage where document_id = ?)",
        [document_id],
    ).rowcount
    _count_deleted(tables, num)


def has_passages(tables: Tables) -> bool:
    return tables.execute("select 1 from passage limit 1").fetchone() is not None


def look_at_languages(tables: Tables, limit: int) -> bool:
    """Note the language of documents that nobody has looked at. False: there are none."""
    rows = tables.execute(
        "select id from document where language is null limit ?", [limit]
    ).fetchall()
    for (document_id,) in rows:
        parts: list[str] = []
        length = 0
        for (text,) in tables.execute(
            "select text from page where document_id = ? order by number", [document_id]
        ):
            parts.append(text)
            length += len(text)
            if length > SAMPLE:
                break
        tables.execute(
            "update document set language = ? where id = ?",
            [language_of("\n".join(parts)), document_id],
        )
    return bool(rows)


def next_without(
    tables: Tables, embedder_id: int, languages: Sequence[str], after: int, limit: int
) -> list[Wanted]:
    """The next passages behind `after` that have no vector."""
    condition, values = _known(languages)
    rows = tables.execute(
        "select passage.id from passage join document on document.id = document_id"
        f" where passage.id > ? and {condition} and not exists (select 1 from vector"
        " where embedder_id = ? and passage_id = passage.id) order by passage.id limit ?",
        [after, *values, embedder_id, limit],
    ).fetchall()
    found = ((passage_id, text_of(tables, passage_id)) for (passage_id,) in rows)
    return [Wanted(passage_id, text) for passage_id, text in found if text is not None]


def text_of(tables: Tables, passage_id: int) -> str | None:
    """The passage under its heading, as it is embedded. None: it has gone."""
    found = tables.execute(
        "select document_id, page_from, page_to, start, end, heading from passage where id = ?",
        [passage_id],
    ).fetchone()
    if found is None:
        return None
    document_id, page_from, page_to, start, end, heading = found
    passage = Passage(page_from=page_from, page_to=page_to, start=start, end=end, heading=())
    texts = dict(
        tables.execute(
            "select number, text from page where document_id = ? and number between ? and ?",
            [document_id, page_from, page_to],
        )
    )
    last = heading.rpartition(BETWEEN_HEADINGS)[2]
    text = passage_text(passage, texts)
    return f"{last}\n{text}" if last else text


def put_vectors(
    tables: Tables,
    embedder_id: int,
    made: Iterable[tuple[Wanted, NDArray[np.float32]]],
) -> None:
    """Only of passages that are still the same: a number may be another passage's by now. Nothing
    where the embedder has been given up meanwhile."""
    if not tables.execute("select 1 from embedder where id = ?", [embedder_id]).fetchone():
        return
    for wanted, vector in made:
        if text_of(tables, wanted.passage_id) == wanted.text:
            tables.execute(
                "insert or ignore into vector(embedder_id, passage_id, numbers) values (?, ?, ?)",
                [embedder_id, wanted.passage_id, vector.astype("<f2").tobytes()],
            )


def progress(tables: Tables, key: str, languages: Sequence[str]) -> Progress:
    """Of the embedder with this key, which knows these languages."""
    condition, values = _known(languages)
    (num_all,) = tables.execute("select count(*) from passage").fetchone()
    (num_known,) = tables.execute(
        "select count(*) from passage join document on document.id = document_id"
        f" where language is null or {condition}",
        values,
    ).fetchone()
    (num_made,) = tables.execute(
        "select count(*) from vector where embedder_id = (select id from embedder where key = ?)",
        [key],
    ).fetchone()
    return Progress(num_known, max(0, num_known - num_made), num_all - num_known)


def _known(languages: Sequence[str]) -> tuple[str, list[str | int]]:
    if not languages:
        return "language is not null", []
    return f"language in ({', '.join('?' * len(languages))})", [*languages]


def _forget_unknown(tables: Tables, embedder_id: int, languages: Sequence[str]) -> None:
    condition, values = _known(languages)
    num = tables.execute(
        "delete from vector where embedder_id = ? and passage_id not in"
        " (select passage.id from passage join document on document.id = document_id"
        f" where {condition})",
        [embedder_id, *values],
    ).rowcount
    _count_deleted(tables, num)


def _forget_embedders(tables: Tables, condition: str, values: list[int]) -> None:
    num = tables.execute(
        f"delete from vector where embedder_id in (select id from embedder where {condition})",
        values,
    ).rowcount
    tables.execute(f"delete from embedder where {condition}", values)
    _count_deleted(tables, num)


def num_deleted(tables: Tables) -> int:
    """How many have ever gone: whoever holds them in memory sees by this that one has."""
    return noted(tables, NUM_DELETED) or 0


def _count_deleted(tables: Tables, num: int) -> None:
    if num > 0:
        count(tables, NUM_DELETED, num)
