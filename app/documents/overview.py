"""The library at a glance: how many files are in which state, and the first of those wanted."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from sqlite_utils import Database as Tables

from app.documents.collections import files_in
from app.documents.document import FileState
from app.documents.pace import Pace, ocr_seconds_a_page, pace
from app.documents.rows import LibraryFile, files, under

MOST_LISTED = 200
_STATE = "iif(is_there, file.state, 'offline')"
_FROM = "from file join root on root.id = root_id"

Counts = dict[FileState, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which files: in a place, in a collection, in a state, with some letters in their path. What
    is empty chooses nothing."""

    place: str = ""
    collection: str = ""
    state: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """`counts` are of every file that may be wanted in any state; `num_found` of them are wanted,
    and `files` are the first of these."""

    counts: Counts
    num_found: int
    files: tuple[LibraryFile, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """Every file once, in exactly one state."""

    files: tuple[LibraryFile, ...]

    @property
    def counts(self) -> Counts:
        return dict(Counter(file.state for file in self.files))


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is still to be read, and how fast that goes."""

    num_files: int
    num_bytes: int
    pace: Pace | None


@dataclass(frozen=True, slots=True)
class Cost:
    """Of reading a place once more; of its pages OCR reads `num_ocr`. `seconds` is None where the
    pace is not known."""

    num_files: int
    num_pages: int
    seconds: float | None
    num_ocr: int = 0


def overview(tables: Tables, wanted: Wanted, limit: int = MOST_LISTED) -> Overview:
    """Raises UsageError for a collection that is not there."""
    condition, values = _condition(tables, wanted)
    counts = _counts(tables, condition, values)
    if wanted.state:
        condition, values = f"{condition} and {_STATE} = ?", [*values, wanted.state]
        num_found = counts.get(FileState(wanted.state), 0)
    else:
        num_found = sum(counts.values())
    return Overview(counts, num_found, tuple(files(tables, condition, values, limit)))


def status_of(tables: Tables, place: str = "", collection: str = "") -> Status:
    """Raises UsageError for a collection that is not there."""
    condition, values = _condition(tables, Wanted(place=place, collection=collection))
    return Status(tuple(files(tables, condition, values)))


def counts_by_root(tables: Tables) -> dict[int, Counts]:
    found: defaultdict[int, Counts] = defaultdict(dict)
    rows = tables.execute(f"select root_id, {_STATE}, count(*) {_FROM} group by 1, 2")
    for root_id, state, num in rows:
        found[root_id][FileState(state)] = num
    return found


def backlog(tables: Tables) -> Backlog:
    (num, size) = tables.execute(
        f"select count(*), coalesce(sum(size), 0) {_FROM} where file.state = ? and is_there",
        [FileState.WAITING],
    ).fetchone()
    return Backlog(num, size, pace(tables))


def cost_of(tables: Tables, place: str, *, has_ocr: bool = False) -> Cost:
    """Of all that can be read there now."""
    condition, values = under("file.path", place)
    (num_files,) = tables.execute(
        f"select count(*) {_FROM} where is_there and {condition}", values
    ).fetchone()
    num_pages, num_ocr, num_unread = tables.execute(
        "select coalesce(sum(num_pages), 0), coalesce(sum(num_ocr_pages), 0),"
        " coalesce(sum(num_unread_pages), 0) from document where id in"
        f" (select document_id {_FROM} where is_there and {condition})",
        values,
    ).fetchone()
    num_ocr = num_ocr + num_unread if has_ocr else 0
    known = pace(tables)
    if known is None and num_ocr < num_pages:
        return Cost(num_files, num_pages, None, num_ocr)
    seconds = (num_pages - num_ocr) / known.pages_per_s if known else 0.0
    return Cost(num_files, num_pages, seconds + num_ocr * ocr_seconds_a_page(tables), num_ocr)


def unread_by_root(tables: Tables) -> dict[int, int]:
    """How many pages OCR could read that it has not read, in each root that is there."""
    rows = tables.execute(
        f"select root_id, sum(num_unread_pages) {_FROM} join document on document.id = document_id"
        " where is_there group by 1"
    )
    return {root_id: num for root_id, num in rows if num}


def cost_of_unread(tables: Tables, place: str) -> Cost:
    """Of reading by OCR what it can read there, and has not read."""
    condition, values = under("file.path", place)
    num_files, num_pages = tables.execute(
        f"select count(*), coalesce(sum(num_unread_pages), 0) {_FROM}"
        " join document on document.id = document_id"
        f" where is_there and num_unread_pages > 0 and {condition}",
        values,
    ).fetchone()
    return Cost(num_files, num_pages, num_pages * ocr_seconds_a_page(tables), num_pages)


def read_unread(tables: Tables, place: str) -> None:
    """Let the files there be read once more that have pages for OCR, and no others."""
    condition, values = under("file.path", place)
    unread = f"select document_id {_FROM} where is_there and {condition}"
    tables.execute(
        f"update document set reader_version = 0 where num_unread_pages > 0 and id in ({unread})",
        values,
    )
    tables.execute(
        "update file set state = ?, message = '', waits_for_ocr = 1 where document_id in"
        f" (select id from document where num_unread_pages > 0 and id in ({unread}))",
        [FileState.WAITING, *values],
    )


def read_again(tables: Tables, place: str) -> None:
    """Let all that lies there be read once more, whether its bytes are known or not."""
    condition, values = under("file.path", place)
    tables.execute(
        "update document set reader_version = 0 where id in"
        f" (select document_id from file where {condition})",
        values,
    )
    tables.execute(
        f"update file set state = ?, message = '' where {condition}", [FileState.WAITING, *values]
    )


def _condition(tables: Tables, wanted: Wanted) -> tuple[str, list[str | int]]:
    conditions, values = ["true"], list[str | int]()
    if wanted.place:
        inside, more = under("file.path", wanted.place)
        conditions.append(inside)
        values += more
    if wanted.collection:
        inside, more = files_in(tables, (wanted.collection,))
        conditions.append(f"({inside})")
        values += more
    if wanted.name:
        # As far as SQLite knows capital letters.
        conditions.append("instr(lower(file.path), lower(?))")
        values.append(wanted.name)
    return " and ".join(conditions), values


def _counts(tables: Tables, condition: str, values: list[str | int]) -> Counts:
    rows = tables.execute(f"select {_STATE}, count(*) {_FROM} where {condition} group by 1", values)
    return {FileState(state): num for state, num in rows}
