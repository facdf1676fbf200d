"""A document as a model reads it whole: all of its text once, in numbered parts of one page each.

    passages of the index   [------][------]        they overlap
                                 [------]
    parts                   [-----------][-]        they do not

The fence of a document is stored when it is read whole for the first time, so that every
conversation begins with the same tokens, and their KV is read once. Until then who only looks at it
sees one that stays in memory.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace

from sqlite_utils import Database as Tables

from app.documents.contents import stored_passages
from app.documents.document import FileState
from app.documents.quotation import Quotation
from app.documents.quoting import draw_fence
from app.documents.rows import path_from
from app.documents.split import WORD, Passage, passage_text
from app.documents.whole import Whole

MOST_WORDS = 240
"""Of a part, so that what a citation names is still a place."""


@dataclass(frozen=True, slots=True)
class WholeText:
    """All of it: its `parts` in their order, numbered from 1. `is_marked`: it was read whole, and
    its fence is stored."""

    whole: Whole
    parts: tuple[Quotation, ...]
    is_marked: bool = True


def only_document(tables: Tables, condition: str, values: Sequence[str | int]) -> int | None:
    """The one document with text among the files that the condition lets through. None: there are
    more, or there is none."""
    found = tables.execute(
        "select distinct document.id from file join document on document.id = document_id"
        f" where document.state = ? {condition and f'and ({condition})'} limit 2",
        [FileState.INDEXED, *values],
    ).fetchall()
    return found[0][0] if len(found) == 1 else None


def document_with(tables: Tables, sha256: str) -> int | None:
    """The document with these bytes. None: it has gone, or changed."""
    found = tables.execute("select id from document where sha256 = ?", [sha256]).fetchone()
    return None if found is None else found[0]


def whole_text(
    tables: Tables,
    document_id: int,
    drawn: MutableMapping[str, str],
    condition: str = "",
    values: Sequence[str | int] = (),
) -> WholeText:
    """With the paths of those of its files that the condition lets through. `drawn` has the fences
    of documents that are not marked, by their SHA-256, and gets this one's."""
    sha256, title, num_pages, fence = tables.execute(
        "select document.sha256, title, num_pages, fence from document"
        " left join whole on whole.document_id = document.id where document.id = ?",
        [document_id],
    ).fetchone()
    rows, texts = stored_passages(tables, document_id)
    is_marked = fence is not None
    if not is_marked:
        fence = drawn[sha256] = draw_fence(texts.values(), drawn.get(sha256, ""))
    paths = tables.execute(
        f"select path from file where document_id = ? {condition and f'and ({condition})'}"
        " order by path",
        [document_id, *values],
    )
    whole = Whole(
        sha256=sha256,
        paths=tuple(path_from(path) for (path,) in paths),
        title=title,
        num_pages=num_pages,
        fence=fence,
    )
    labels = dict(
        tables.execute("select number, label from page where document_id = ?", [document_id])
    )
    parts = parts_of((row.passage for row in rows), texts)
    quotations = (_quotation(whole, each, texts, labels) for each in parts)
    return WholeText(whole, tuple(quotations), is_marked)


def mark_whole(tables: Tables, whole: Whole) -> str | None:
    """From now on it has this fence, which stands nowhere in it: the one that was seen, unless the
    text has changed, or another one is stored already. None: the document has gone."""
    document_id = document_with(tables, whole.sha256)
    if document_id is None:
        return None
    texts = tables.execute("select text from page where document_id = ?", [document_id])
    tables.execute(
        "insert or ignore into whole(document_id, sha256, fence) values (?, ?, ?)",
        [document_id, whole.sha256, draw_fence([text for (text,) in texts], whole.fence)],
    )
    (fence,) = tables.execute(
        "select fence from whole where document_id = ?", [document_id]
    ).fetchone()
    return str(fence)


def ever_read_whole(tables: Tables) -> list[str]:
    """The bytes, by their SHA-256, of every document that was read whole."""
    return [sha256 for (sha256,) in tables.execute("select sha256 from whole")]


def tell_of_gone(tables: Tables, gone: Callable[[str], None]) -> None:
    """From now on, for as long as this connection lasts, `gone` hears in its thread the SHA-256 of
    each document that had been read whole and leaves."""
    tables.conn.create_function("document_gone", 1, gone)
    tables.execute(
        "create temp trigger if not exists whole_gone after delete on main.whole"
        " begin select document_gone(old.sha256); end"
    )


def parts_of(passages: Iterable[Passage], texts: dict[int, str]) -> list[Passage]:
    """Every word once, as the passages have them in their order; neighbours on one page and under
    one heading together, up to a size."""
    parts: list[Passage] = []
    for each in passages:
        if parts:
            last = parts[-1]
            if each.page_from == last.page_to:
                each = replace(each, start=max(each.start, last.end))
            if each.page_from == each.page_to and each.start >= each.end:
                continue
            together = replace(last, page_to=each.page_to, end=each.end)
            if _is_one(last, each) and _num_words(together, texts) <= MOST_WORDS:
                parts[-1] = together
                continue
        parts.append(each)
    return parts


def _is_one(one: Passage, other: Passage) -> bool:
    pages = {one.page_from, one.page_to, other.page_from, other.page_to}
    return len(pages) == 1 and one.heading == other.heading


def _num_words(part: Passage, texts: dict[int, str]) -> int:
    return sum(1 for _ in WORD.finditer(passage_text(part, texts)))


def _quotation(
    whole: Whole, part: Passage, texts: dict[int, str], labels: Mapping[int, str]
) -> Quotation:
    return Quotation(
        sha256=whole.sha256,
        paths=whole.paths,
        title=whole.title,
        page=part.page_from,
        page_to=part.page_to,
        label=labels.get(part.page_from, ""),
        heading=part.heading,
        start=part.start,
        end=part.end,
        text=passage_text(part, texts),
    )
