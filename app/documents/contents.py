"""What is kept of a document: its pages, its passages, and their places in the text index.

All of it comes and goes in one transaction, and only through this file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlite_utils import Database as Tables

from app.documents.document import Facts, FileState, Page, PageFlag
from app.documents.embedding.vectors import forget_vectors
from app.documents.index_facts import note, noted
from app.documents.kinds import DRAWN
from app.documents.pieces import stored_pieces
from app.documents.split import BETWEEN_HEADINGS, Passage, passage_text, split
from app.documents.words import FOLD_VERSION, index_text
from app.history.rows import storable

INDEX_VERSION = "index version"
HAS_DELETED = "has deleted"


class Row(NamedTuple):
    """A passage with its number in the index."""

    passage_id: int
    passage: Passage


def put_document(
    tables: Tables, sha256: str, reader_version: int, facts: Facts, pages: Sequence[Page]
) -> int:
    """Keep what was read of these bytes, in the place of what was read of them before; its id."""
    pages = [replace(page, text=storable(page.text)) for page in pages]
    num_empty = sum(not page.text.strip() for page in pages)
    state = FileState.NO_TEXT if num_empty == len(pages) else FileState.INDEXED
    values = (
        state,
        facts.kind,
        storable(facts.title),
        storable(facts.notice),
        len(pages),
        num_empty,
        sum(page.is_unread for page in pages) if facts.kind in DRAWN else 0,
        sum(PageFlag.OCR in page.flags for page in pages),
        reader_version,
    )
    found = tables.execute("select id from document where sha256 = ?", [sha256]).fetchone()
    if found is not None:
        (document_id,) = found
        _forget_contents(tables, document_id)
        tables.execute(
            "update document set state = ?, kind = ?, title = ?, notice = ?, num_pages = ?,"
            " num_empty_pages = ?, num_unread_pages = ?, num_ocr_pages = ?, reader_version = ?,"
            " language = null where id = ?",
            [*values, document_id],
        )
    else:
        document_id = tables.execute(
            "insert into document(state, kind, title, notice, num_pages, num_empty_pages,"
            " num_unread_pages, num_ocr_pages, reader_version, sha256)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [*values, sha256],
        ).lastrowid
    assert isinstance(document_id, int)
    tables.conn.executemany(
        "insert into page(document_id, number, label, flags, text, pieces)"
        " values (?, ?, ?, ?, ?, ?)",
        (
            (
                document_id,
                page.number,
                storable(page.label),
                ",".join(sorted(page.flags)),
                page.text,
                stored_pieces(page.pieces),
            )
            for page in pages
        ),
    )
    texts = {page.number: page.text for page in pages}
    for passage in split(pages):
        passage_id = tables.execute(
            "insert into passage(document_id, page_from, page_to, start, end, heading)"
            " values (?, ?, ?, ?, ?, ?)",
            [
                document_id,
                passage.page_from,
                passage.page_to,
                passage.start,
                passage.end,
                storable(BETWEEN_HEADINGS.join(passage.heading)),
            ],
        ).lastrowid
        assert passage_id is not None
        _index(tables, [Row(passage_id, passage)], texts)
    return document_id


def forget_unused(tables: Tables, document_ids: Iterable[int | None]) -> None:
    """Delete those of the documents that no file has any more. Whatever is derived of a document
    (its vectors, its KV) must end here as well."""
    for document_id in set(document_ids) - {None}:
        used = tables.execute(
            "select 1 from file where document_id = ? limit 1", [document_id]
        ).fetchone()
        if used is None:
            assert document_id is not None
            _forget_contents(tables, document_id)
            tables.execute("delete from document where id = ?", [document_id])


def _forget_contents(tables: Tables, document_id: int) -> None:
    rows, texts = stored_passages(tables, document_id)
    _index(tables, rows, texts, is_removed=True)
    # What was made of it goes, too; see `Library` for what a model has kept of it.
    tables.execute("delete from whole where document_id = ?", [document_id])
    forget_vectors(tables, document_id)
    tables.execute("delete from passage where document_id = ?", [document_id])
    tables.execute("delete from page where document_id = ?", [document_id])
    note(tables, HAS_DELETED, 1)


def make_index_if_old(tables: Tables) -> None:
    """The text index anew, from the pages, where it was made by other rules; nothing is read
    again."""
    if noted(tables, INDEX_VERSION) == FOLD_VERSION:
        return
    tables.execute("insert into passage_fts(passage_fts) values ('delete-all')")
    for (document_id,) in tables.execute("select id from document").fetchall():
        _index(tables, *stored_passages(tables, document_id))
    note(tables, INDEX_VERSION, FOLD_VERSION)


def merge_index(tables: Tables) -> bool:
    """Until its parts are merged, the index still holds the words of what was deleted. False:
    nothing was deleted since the last time."""
    if not noted(tables, HAS_DELETED):
        return False
    tables.execute("insert into passage_fts(passage_fts) values ('optimize')")
    note(tables, HAS_DELETED, 0)
    return True


def stored_passages(tables: Tables, document_id: int) -> tuple[list[Row], dict[int, str]]:
    """In their order, with the texts of the pages by their numbers."""
    rows = [
        Row(
            passage_id,
            Passage(
                page_from=page_from,
                page_to=page_to,
                start=start,
                end=end,
                heading=tuple(heading.split(BETWEEN_HEADINGS)) if heading else (),
            ),
        )
        for passage_id, page_from, page_to, start, end, heading in tables.execute(
            "select id, page_from, page_to, start, end, heading from passage"
            " where document_id = ? order by id",
            [document_id],
        )
    ]
    texts = dict(
        tables.execute("select number, text from page where document_id = ?", [document_id])
    )
    return rows, texts


def _index(
    tables: Tables, rows: Iterable[Row], texts: dict[int, str], *, is_removed: bool = False
) -> None:
    statement = (
        "insert into passage_fts(passage_fts, rowid, heading, body) values ('delete', ?, ?, ?)"
        if is_removed
        else "insert into passage_fts(rowid, heading, body) values (?, ?, ?)"
    )
    tables.conn.executemany(
        statement,
        (
            (
                passage_id,
                index_text(BETWEEN_HEADINGS.join(passage.heading)),
                index_text(passage_text(passage, texts)),
            )
            for passage_id, passage in rows
        ),
    )
