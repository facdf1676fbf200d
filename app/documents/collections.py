"""Collections: names for places of the library, so that a question is asked of some of it only."""

from sqlite_utils import Database as Tables

from app.documents.rows import path_from, stored, under
from app.visible import visible
from engine.errors import UsageError


def check_name(name: str) -> None:
    """Raises UsageError for one that would not be shown as it is."""
    if visible(name) != name:
        raise UsageError(
            f"The name {visible(name)} has characters that nobody sees, or that turn the writing"
            " around: give the collection one without them."
        )


def collect(tables: Tables, name: str, place: str) -> None:
    """Raises UsageError for a name that cannot be shown."""
    check_name(name)
    tables.execute("insert or ignore into collection(name) values (?)", [name])
    tables.execute(
        "insert or ignore into collected(collection_id, path)"
        " select id, ? from collection where name = ?",
        [stored(place), name],
    )


def take_out(tables: Tables, name: str, place: str) -> bool:
    """What lies there stays in the library. False: it was not in this collection."""
    found = tables.execute(
        "delete from collected where path = ?"
        " and collection_id = (select id from collection where name = ?)",
        [stored(place), name],
    )
    _remove_empty(tables)
    return found.rowcount > 0


def forget_places(tables: Tables, place: str) -> None:
    """Of a place that has left the library, and all in it."""
    condition, values = under("path", place)
    tables.execute(f"delete from collected where {condition}", values)
    _remove_empty(tables)


def _remove_empty(tables: Tables) -> None:
    tables.execute("delete from collection where id not in (select collection_id from collected)")


def collections(tables: Tables) -> dict[str, list[str]]:
    """The places of each, by name."""
    found: dict[str, list[str]] = {}
    for name, path in tables.execute(
        "select name, path from collection join collected on collection.id = collection_id"
        " order by name, path"
    ):
        found.setdefault(name, []).append(path_from(path))
    return found


def files_in(
    tables: Tables, names: tuple[str, ...], places: tuple[str, ...] = ()
) -> tuple[str, list[str | int]]:
    """The condition that a file is in one of these collections or at one of these places, and its
    values. Neither: the whole library. Raises UsageError."""
    known = collections(tables)
    conditions: list[str] = []
    values: list[str | int] = []
    for place in places:
        condition, more = under("file.path", place)
        conditions.append(condition)
        values += more
    for name in names:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "there is none yet"
            raise UsageError(f"There is no collection {name!r}: {there}.")
        for place in known[name]:
            condition, more = under("file.path", place)
            conditions.append(condition)
            values += more
    return " or ".join(conditions), values
