"""The files of the library in its tables: which there are, in which state, and from which place."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlite_utils import Database as Tables

from app.amounts import counted
from app.documents.contents import forget_unused
from app.documents.document import FileState
from app.documents.index_facts import note, noted
from app.documents.ocr import remedy
from app.documents.scan import Changes, Stamp
from app.history.rows import storable

READER = "reader version"
# A path never holds two of these in a row, so they may mark a byte that is no text.
_NO_TEXT = re.compile("[\ud800-\udfff]")
_MARKED = re.compile("//([0-9a-f]{4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A folder or a single file that a person has added."""

    root_id: int
    path: str
    is_folder: bool
    is_there: bool
    identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFile:
    """`message` is a sentence for the user, or empty. `num_pages` is 0 where nothing was read."""

    path: str
    state: FileState
    num_pages: int
    message: str
    document_id: int | None = None
    num_unread: int = 0
    """Pages that OCR could read, and has not read."""
    num_ocr: int = 0
    """Pages that it has read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A file that is to be read; `sha256` of what was read of it before, or empty. `folder` is the
    root that it lies in, or None where it is one itself. `waits_for_ocr`: all else was read."""

    file_id: int
    root_id: int
    path: str
    sha256: str
    folder: str | None
    waits_for_ocr: bool = False
    num_bytes: int = 0


def stored(path: str) -> str:
    """A path as the tables can hold it; some systems have names that are no text."""
    return _NO_TEXT.sub(lambda match: f"//{ord(match.group()):04x}", path)


def path_from(value: str) -> str:
    return _MARKED.sub(lambda match: chr(int(match.group(1), 16)), value)


def under(column: str, place: str) -> tuple[str, list[str | int]]:
    """The condition that a path is this place or lies in it, and its values."""
    inside = stored(place).rstrip(os.sep) + os.sep
    return (
        f"({column} = ? or substr({column}, 1, ?) = ?)",
        [stored(place), len(inside), inside],
    )


def roots(tables: Tables) -> list[Root]:
    rows = tables.execute("select id, path, is_folder, is_there, identity from root order by path")
    return [
        Root(
            root_id=root_id,
            path=path_from(path),
            is_folder=bool(is_folder),
            is_there=bool(is_there),
            identity=identity,
        )
        for root_id, path, is_folder, is_there, identity in rows
    ]


def add_root(tables: Tables, path: str, *, is_folder: bool, takes: Iterable[int]) -> None:
    """`takes` are the roots that lie in it: their files become this one's, as they are."""
    root_id = tables.execute(
        "insert into root(path, is_folder) values (?, ?)", [stored(path), is_folder]
    ).lastrowid
    for inner in takes:
        tables.execute("update file set root_id = ? where root_id = ?", [root_id, inner])
        tables.execute("delete from root where id = ?", [inner])


def remove_root(tables: Tables, root_id: int) -> int:
    """With its files and all that was read of them; how many files that were."""
    rows = tables.execute("select document_id from file where root_id = ?", [root_id]).fetchall()
    tables.execute("delete from root where id = ?", [root_id])
    forget_unused(tables, (document_id for (document_id,) in rows))
    return len(rows)


def known_files(tables: Tables, root_id: int) -> dict[str, Stamp]:
    rows = tables.execute("select path, size, mtime_ns from file where root_id = ?", [root_id])
    return {path_from(path): Stamp(size, mtime_ns) for path, size, mtime_ns in rows}


def note_lost(tables: Tables, root_id: int) -> None:
    tables.execute("update root set is_there = 0 where id = ?", [root_id])


def note_sight(
    tables: Tables, root_id: int, identity: str, changes: Changes, digests: Mapping[str, str]
) -> list[tuple[str, int | None]]:
    """Take the library to what was seen. `digests` are of new files that may be old ones under
    another name: those are linked before the old name goes, so nothing is read again. What has
    gone, with the documents that it was."""
    tables.execute("update root set is_there = 1, identity = ? where id = ?", [identity, root_id])
    for path, stamp in changes.new.items():
        tables.execute(
            "insert or ignore into file(root_id, path, size, mtime_ns, state)"
            " values (?, ?, ?, ?, ?)",
            [root_id, stored(path), stamp.size, stamp.mtime_ns, FileState.WAITING],
        )
        if path in digests:
            tables.execute(
                "update file set (document_id, state) = (select id, state from document"
                " where sha256 = ?) where path = ? and exists"
                " (select 1 from document where sha256 = ?)",
                [digests[path], stored(path), digests[path]],
            )
    for path, stamp in changes.changed.items():
        # What was read of it stays until it is known whether its bytes are others.
        tables.execute(
            "update file set size = ?, mtime_ns = ?, state = ?, message = '', waits_for_ocr = 0"
            " where path = ?",
            [stamp.size, stamp.mtime_ns, FileState.WAITING, stored(path)],
        )
    left = [
        (path, document_id)
        for path in sorted(changes.gone)
        for (document_id,) in tables.execute(
            "delete from file where path = ? and root_id = ? returning document_id",
            [stored(path), root_id],
        ).fetchall()
    ]
    forget_unused(tables, (document_id for _, document_id in left))
    return left


def next_waiting(tables: Tables, below: int | None = None) -> Waiting | None:
    """Those first whose old text may still be found, last those that wait for OCR; nothing of a
    root that is not there. With `below` only a file that has fewer bytes."""
    # The state is written out, or the index for this question would not be used.
    found = tables.execute(
        "select file.id, root_id, file.path, coalesce(sha256, ''), iif(is_folder, root.path, null),"
        " waits_for_ocr, size"
        " from file cross join root on root.id = root_id"
        " left join document on document.id = document_id"
        f" where file.state = '{FileState.WAITING.value}' and is_there"
        " and (?1 is null or size < ?1)"
        " order by waits_for_ocr, document_id is null, file.id limit 1",
        [below],
    ).fetchone()
    if found is None:
        return None
    file_id, root_id, path, sha256, folder, waits_for_ocr, num_bytes = found
    return Waiting(
        file_id=file_id,
        root_id=root_id,
        path=path_from(path),
        sha256=sha256,
        folder=None if folder is None else path_from(folder),
        waits_for_ocr=bool(waits_for_ocr),
        num_bytes=num_bytes,
    )


def num_waiting(tables: Tables, condition: str, values: Sequence[str | int]) -> int:
    """How many of the files that the condition lets through are still to be read."""
    (num,) = tables.execute(
        "select count(*) from file join root on root.id = root_id"
        # Written out for the sake of the index, as above.
        f" where file.state = '{FileState.WAITING.value}' and is_there"
        f" {condition and f'and ({condition})'}",
        values,
    ).fetchone()
    return int(num)


def wait_again(tables: Tables, place: str, states: Iterable[FileState]) -> None:
    condition, values = under("path", place)
    for state in states:
        tables.execute(
            f"update file set state = ?, message = '' where state = ? and {condition}",
            [FileState.WAITING, state, *values],
        )


def wait_for_newer_reader(tables: Tables, version: int) -> None:
    """Let everything be read again that an older version has read, or could not read."""
    tables.execute(
        "update file set state = ? where document_id in"
        " (select id from document where reader_version < ?)",
        [FileState.WAITING, version],
    )
    if noted(tables, READER) != version:
        tables.execute(
            "update file set state = ?, message = '' where state in (?, ?)",
            [FileState.WAITING, FileState.FAILED, FileState.UNSUPPORTED],
        )
        note(tables, READER, version)


def link(tables: Tables, file_id: int, stamp: Stamp, sha256: str, version: int) -> bool:
    """Let a file be a document that is known. False: these bytes are not known yet."""
    found = tables.execute(
        "select id, state from document where sha256 = ? and reader_version >= ?",
        [sha256, version],
    ).fetchone()
    if found is None:
        return False
    settle(tables, file_id, stamp, found[1], document_id=found[0])
    return True


def keep_as_read(tables: Tables, file_id: int, stamp: Stamp, sha256: str, version: int) -> None:
    """Let what an older version has read of these bytes count as read by this one."""
    tables.execute("update document set reader_version = ? where sha256 = ?", [version, sha256])
    link(tables, file_id, stamp, sha256, version)


def settle(
    tables: Tables,
    file_id: int,
    stamp: Stamp | None,
    state: FileState,
    message: str = "",
    document_id: int | None = None,
    *,
    waits_for_ocr: bool = False,
) -> None:
    """Write down what became of a file. It may be gone by now, and then there is nothing to say."""
    _settle(tables, file_id, stamp, document_id, state, message)
    tables.execute("update file set waits_for_ocr = ? where id = ?", [waits_for_ocr, file_id])


def _settle(
    tables: Tables,
    file_id: int,
    stamp: Stamp | None,
    document_id: int | None,
    state: str,
    message: str,
) -> None:
    before = tables.execute("select document_id from file where id = ?", [file_id]).fetchone()
    tables.execute(
        "update file set document_id = ?, state = ?, message = ? where id = ?",
        [document_id, state, storable(message), file_id],
    )
    if stamp is not None:
        tables.execute(
            "update file set size = ?, mtime_ns = ? where id = ?",
            [stamp.size, stamp.mtime_ns, file_id],
        )
    if before is not None:
        forget_unused(tables, [before[0]])


def remove_file(tables: Tables, file_id: int) -> None:
    rows = tables.execute(
        "delete from file where id = ? returning document_id", [file_id]
    ).fetchall()
    forget_unused(tables, (document_id for (document_id,) in rows))


def has_file(tables: Tables, file_id: int) -> bool:
    return bool(tables.execute("select 1 from file where id = ?", [file_id]).fetchone())


def sizes_with_documents(tables: Tables, sizes: Iterable[int]) -> set[int]:
    """Those of the sizes that a file with a document has."""
    return {
        size
        for size in set(sizes)
        if tables.execute(
            "select 1 from file where size = ? and document_id is not null", [size]
        ).fetchone()
    }


def files(
    tables: Tables,
    condition: str = "",
    values: Sequence[str | int] = (),
    limit: int | None = None,
) -> list[LibraryFile]:
    """In the order of their paths; without `limit` all of them."""
    rows = tables.execute(
        "select file.path, file.state, message, is_there, num_pages, num_empty_pages,"
        " num_unread_pages, num_ocr_pages, notice, document_id"
        " from file join root on root.id = root_id left join document on document.id = document_id"
        f" {condition and f'where {condition}'} order by file.path limit ?",
        [*values, -1 if limit is None else limit],
    )
    return [_file(*row) for row in rows]


def _file(
    path: str,
    state: str,
    message: str,
    is_there: int,
    num_pages: int | None,
    num_empty: int | None,
    num_unread: int | None,
    num_ocr: int | None,
    notice: str | None,
    document_id: int | None,
) -> LibraryFile:
    said = message or _said_of(notice or "", num_pages or 0, num_empty or 0, num_unread or 0)
    return LibraryFile(
        path=path_from(path),
        state=FileState(state) if is_there else FileState.OFFLINE,
        num_pages=num_pages or 0,
        message=said,
        document_id=document_id,
        num_unread=num_unread or 0,
        num_ocr=num_ocr or 0,
    )


def num_documents(tables: Tables, condition: str, values: Sequence[str | int]) -> int:
    """How many different ones have text, of the files that the condition lets through."""
    (num,) = tables.execute(
        "select count(distinct document_id) from file join document on document.id = document_id"
        f" where document.state = ? {condition and f'and ({condition})'}",
        [FileState.INDEXED, *values],
    ).fetchone()
    return int(num)


def _said_of(notice: str, num_pages: int, num_empty: int, num_unread: int) -> str:
    said = []
    of = f"of {counted(num_pages, 'page')}"
    if num_empty and num_empty == num_unread:
        are = "is a picture" if num_empty == 1 else "are pictures"
        said.append(f"{num_empty:,} {of} {are} without text. {remedy()}")
    elif num_empty:
        said.append(f"{num_empty:,} {of} {'has' if num_empty == 1 else 'have'} no text.")
    if num_unread and num_unread != num_empty:
        are = "is a picture, or its" if num_unread == 1 else "are pictures, or their"
        said.append(f"{num_unread:,} {of} {are} letters make no words. {remedy()}")
    return " ".join([*said, notice]).strip()
