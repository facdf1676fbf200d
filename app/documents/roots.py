"""The folders and files that a person has added: which has what, and what has changed in them.

place ---> root that has it, or a new one that takes over those inside
root ----> Sight of it now, compared with the files that are known ---> changes in the tables
"""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sqlite_utils import Database as Tables

from app.documents.collections import forget_places
from app.documents.moves import forget_moves, note_moves
from app.documents.rows import (
    Root,
    add_root,
    known_files,
    note_lost,
    note_sight,
    remove_root,
    roots,
    sizes_with_documents,
    under,
)
from app.documents.scan import (
    Sight,
    Stamp,
    compare,
    is_ignored,
    is_lost,
    is_own,
    is_under,
    look,
    sha256_of,
)
from app.history.database import Database
from app.visible import visible
from engine.errors import UsageError


class Roots:
    """Owned by the event loop; the library lets nobody look while another one does.

    `own` are the folders of Inglenook itself, which are never read, but for `received`, in which
    documents of the user are kept.
    """

    def __init__(self, store: Database, own: Sequence[Path], received: Path | None) -> None:
        self._store = store
        self._own = tuple(os.path.realpath(each) for each in own)
        self._received = () if received is None else (os.path.realpath(received),)
        self._moved = asyncio.Event()

    def is_own(self, path: Path) -> bool:
        """Whether it belongs to Inglenook itself. Asks the disk where links lead."""
        return is_own(path, self._own) and not is_own(path, self._received)

    def moved(self) -> asyncio.Event:
        """Set when a root has come or gone; ask for the next one then."""
        return self._moved

    async def see(self, place: Path) -> Sight | None:
        """What lies there now. None: nothing."""
        return await asyncio.to_thread(self._see, place)

    async def take_in(self, path: Path, *, is_folder: bool) -> Root:
        """The root that has this place, which is made where there is none."""
        place = str(path)
        kin = await self._kin_of(path)
        root = root_of(kin, place)
        if root is None:
            inner = _inside(kin, place)
            await self._store.run(
                lambda tables: add_root(tables, place, is_folder=is_folder, takes=inner)
            )
            root = root_of(await self._kin_of(path), place)
            assert root is not None
            self._tell()
        return root

    async def leave(self, place: str) -> int:
        """Take a root out with all that was read of it; how many files it had. Raises UsageError
        for what is none."""
        root = root_alone(await self._store.run(roots), place)

        def leave(tables: Tables) -> int:
            num = remove_root(tables, root.root_id)
            forget_places(tables, place)
            forget_moves(tables)
            return num

        num_files = await self._store.run(leave)
        self._tell()
        return num_files

    async def look_at(self, root: Root, *, is_asked: bool = False) -> None:
        """Write down what has changed in it. `is_asked`: a person says that it is right as it is,
        so an emptied folder is empty."""
        sight = await self.see(Path(root.path))
        known = await self._store.run(lambda tables: known_files(tables, root.root_id))
        if sight is None or not is_asked and is_lost(sight, root.identity, len(known)):
            if root.is_there:
                await self._store.run(lambda tables: note_lost(tables, root.root_id))
            return
        changes = compare(known, sight)
        if not changes and root.is_there and root.identity == sight.identity:
            return
        # Only where something has gone too: copies are known when it is their turn.
        digests = await self._digests_of_renamed(changes.new) if changes.gone else {}

        def note(tables: Tables) -> None:
            left = note_sight(tables, root.root_id, sight.identity, changes, digests)
            note_moves(tables, left, changes.new)

        await self._store.run(note)

    def _see(self, root: Path) -> Sight | None:
        return look(root, () if is_own(root, self._received) else self._own)

    async def _kin_of(self, path: Path) -> list[Root]:
        """The roots that it may lie in, or that may lie in it: no walk from elsewhere comes to what
        was received."""
        there = await self._store.run(roots)

        def alike() -> list[Root]:
            is_received = is_own(path, self._received)
            return [each for each in there if is_own(each.path, self._received) == is_received]

        return await asyncio.to_thread(alike)

    async def _digests_of_renamed(self, new: Mapping[str, Stamp]) -> dict[str, str]:
        """Of those new files that may be old ones under another name: they have the same size."""
        sizes = {stamp.size for stamp in new.values()}
        old = await self._store.run(lambda tables: sizes_with_documents(tables, sizes))

        def hash_all() -> dict[str, str]:
            digests = {}
            for path, stamp in new.items():
                if stamp.size in old:
                    # One that cannot be read says so when it is its turn.
                    with suppress(OSError):
                        digests[path] = sha256_of(path)
            return digests

        return await asyncio.to_thread(hash_all)

    def _tell(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()


def check_place(tables: Tables, place: str) -> None:
    """Raises UsageError for a place of which nothing is in the library."""
    condition, values = under("path", place)
    for table in ("root", "file"):
        if tables.execute(f"select 1 from {table} where {condition} limit 1", values).fetchone():
            return
    raise UsageError(
        f"Nothing at {visible(place)} is in the library: the list of its places names what is."
    )


def root_alone(there: Sequence[Root], place: str) -> Root:
    """The root at this place, which can be taken out. Raises UsageError for what is none."""
    for root in there:
        if root.path == place:
            return root
    outer = root_of(there, place)
    if outer is None:
        raise UsageError(
            f"{visible(place)} is not in the library: the list of its places names what is."
        )
    raise UsageError(
        f"{visible(place)} lies in {visible(outer.path)}, which is in the library as a whole:"
        " remove that folder, or move the file out of it."
    )


def root_of(there: Iterable[Root], place: str) -> Root | None:
    """The root that has this place: itself, or the folder around it whose walk comes to it."""
    for root in there:
        if root.path == place:
            return root
    for root in there:
        if is_under(place, root.path) and not is_ignored(Path(place), Path(root.path)):
            return root
    return None


def _inside(there: Iterable[Root], place: str) -> list[int]:
    """The roots to which a walk from `place` comes."""
    return [
        root.root_id
        for root in there
        if is_under(root.path, place) and not is_ignored(Path(root.path), Path(place))
    ]
