"""Where the files are that a conversation asks: under another name, or not in the library."""

from dataclasses import dataclass, replace
from math import inf

from sqlite_utils import Database as Tables

from app.documents.collections import collections
from app.documents.moves import Move, moved_since, moved_to
from app.documents.rows import roots, under
from app.documents.scope import Scope


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """`scope` has the paths that its files have now. What of it is not in the library is `gone`:
    paths, and `gone_collections` by name. `moves` are those that were noticed lately."""

    scope: Scope
    gone: tuple[str, ...] = ()
    gone_collections: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()

    @property
    def is_whole(self) -> bool:
        """All of it is there."""
        return not (self.gone or self.gone_collections)

    @property
    def rest(self) -> Scope | None:
        """What is there of it. None: nothing."""
        names = tuple(each for each in self.scope.collections if each not in self.gone_collections)
        paths = tuple(each for each in self.scope.paths if each not in self.gone)
        left = replace(self.scope, collections=names, paths=paths)
        return left if self.is_whole or not left.is_whole else None


def whereabouts(tables: Tables, scope: Scope, since: float = inf) -> Whereabouts:
    """Now. Moves that were noticed after `since`, in seconds since the epoch, are named."""
    added = {root.path for root in roots(tables)}
    paths: list[str] = []
    gone: list[str] = []
    for path in scope.paths:
        if path not in added and not _has_files(tables, path):
            now = moved_to(tables, path)
            if now is None:
                gone.append(path)
            path = now or path
        paths.append(path)
    known = collections(tables) if scope.collections else {}
    here = replace(scope, paths=tuple(dict.fromkeys(paths)))
    return Whereabouts(
        here,
        tuple(gone),
        tuple(each for each in scope.collections if each not in known),
        tuple(move for path in here.paths for move in moved_since(tables, path, since)),
    )


def _has_files(tables: Tables, place: str) -> bool:
    condition, values = under("path", place)
    found = tables.execute(f"select 1 from file where {condition} limit 1", values)
    return found.fetchone() is not None
