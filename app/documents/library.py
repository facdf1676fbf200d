"""A person's own files: folders and single files, what was read of them, and what is found in it.

    add, look ---> Roots write down what has changed ---> Intake reads what waits
    ask, find ---> its own connection, so that a question never waits for a file

What was read can be made again from the files, where a password opened one with that password.
Which places were added and what collections they are in stands nowhere else.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlite_utils import Database as Tables

from app.documents.cite import Checked
from app.documents.collections import check_name, collect, files_in, take_out
from app.documents.contents import make_index_if_old, merge_index
from app.documents.document import FileState
from app.documents.embedding.embeddings import NO_EMBEDDING, Embedding, Embeddings
from app.documents.embedding.vectors import used
from app.documents.fusion import Legs
from app.documents.holding import LIBRARY
from app.documents.intake import READER_VERSION, AtWork, Intake, Reader
from app.documents.overview import read_again, read_unread
from app.documents.page_picture import PagePicture
from app.documents.page_view import PageView, Stretch, page_view
from app.documents.pictures import Drawer, Pictures
from app.documents.quotation import Quotation
from app.documents.roots import Roots, check_place
from app.documents.rows import (
    num_documents,
    num_waiting,
    roots,
    wait_again,
    wait_for_newer_reader,
)
from app.documents.scan import Sight, is_away, is_under
from app.documents.scans import Scans
from app.documents.scope import Scope
from app.documents.search import Found, Search
from app.documents.whole_text import (
    WholeText,
    document_with,
    ever_read_whole,
    mark_whole,
    only_document,
    tell_of_gone,
    whole_text,
)
from app.history.database import Database
from app.visible import visible
from engine.errors import HistoryError, UsageError

if TYPE_CHECKING:
    from app.documents.watch import Watch

TRIED_AGAIN = (FileState.FAILED, FileState.DAMAGED, FileState.UNSUPPORTED, FileState.TOO_LARGE)
"""What a person may ask to be read once more."""
ASKED_FOR = (*TRIED_AGAIN, FileState.INDEXED, FileState.NO_TEXT, FileState.EMPTY)
"""And of a single file that is named: its size and its time may be those of before."""
NUM_HITS = 8
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found, in how many documents it was looked for, and how many files will be read."""

    found: Found
    num_documents: int
    num_waiting: int


class Library:
    """Owned by the event loop. Opening makes the file at `path`, or raises what is wrong with it;
    `prepare` is the first thing to call.

    `own` are the folders of Inglenook itself, which are never read, but for `received`, in which
    documents of the user are kept. With `scans` OCR reads what `reader` finds no text on. With
    `only_reads` another process owns the home, and may write at any time: nothing is taken in, and
    only what is asked and found may be called. `on_gone` hears in the event loop of each document
    that had been read whole and has now gone from the library, by its SHA-256.
    """

    def __init__(
        self,
        path: Path,
        reader: Reader,
        own: Sequence[Path] = (),
        *,
        received: Path | None = None,
        drawer: Drawer | None = None,
        embedding: Embedding = NO_EMBEDDING,
        scans: Scans | None = None,
        on_gone: Callable[[str], None] = lambda sha256: None,
        only_reads: bool = False,
    ) -> None:
        self._on_gone = on_gone
        self._only_reads = only_reads
        self._store = Database(path, LIBRARY, is_reader=only_reads)
        self._finder = Database(path, LIBRARY, is_reader=True)
        self._roots = Roots(self._store, own, received)
        self._search = Search()
        self._fences: dict[str, str] = {}
        """Of documents that were looked at whole and never read. Owned by the thread of `_finder`.
        """
        self._looking = asyncio.Lock()
        self.embeddings = Embeddings(self._store, self._finder, embedding)
        self._intake = Intake(self._store, reader, self.embeddings.background.wake, scans)
        self._pictures = Pictures(drawer)
        self._following: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._watch: Watch | None = None

    async def prepare(self) -> None:
        """Take what an older version has left to what this one wants, and go on with what waits."""
        if self._only_reads:
            return
        loop = asyncio.get_running_loop()

        def gone(sha256: str) -> None:
            # Asked by a transaction that may yet fail: then it is only read once more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._on_gone, sha256)

        def renew(tables: Tables) -> None:
            make_index_if_old(tables)
            wait_for_newer_reader(tables, READER_VERSION)
            tell_of_gone(tables, gone)

        await self._store.run(renew)
        self._intake.background.wake()

    def follow(self) -> None:
        """Look at every root now, and follow what changes in them until the library is closed."""
        # It brings a native library, which commands should not wait for.
        from app.documents.watch import Watch

        if self._watch is None:
            self._watch = Watch(self)
            self._following = asyncio.create_task(self._watch.run())
            self.embeddings.background.wake()
            self._warming = asyncio.create_task(self._warm())

    async def _warm(self) -> None:
        """Have the vectors in memory before somebody asks."""
        with suppress(HistoryError):
            searched = await self.ask(used)
            if searched is not None:
                await self.ask(lambda tables: self._search.warm(tables, searched.embedder_id))

    @property
    def notice(self) -> str:
        """What is not noticed at once while the library is followed, or empty."""
        return "" if self._watch is None else self._watch.notice

    @property
    def at_work(self) -> AtWork | None:
        return self._intake.at_work

    @property
    def is_paused(self) -> bool:
        return self._intake.is_paused

    def pause(self) -> None:
        """Read on only after `go_on`, or when something is added."""
        self._intake.pause()

    def go_on(self) -> None:
        self._intake.go_on()

    async def add(
        self, path: Path, *, collection: str = "", password: str = "", tries_again: bool = True
    ) -> Sight:
        """Take a folder or a file in, and look at it now; it is read in the background. What was
        seen there.

        What is in the library is looked at again, and what failed is tried again; a file that is
        named is read again where its bytes have changed, whatever its time says. `password` opens
        those of its files that need one. Raises UsageError.
        """
        place = str(path)
        if await asyncio.to_thread(self._roots.is_own, path):
            raise UsageError(
                f"{visible(place)} belongs to Inglenook itself, and keys and chats lie there: add a"
                " folder of your own files."
            )
        sight = await self._roots.see(path)
        if sight is None:
            away = next((each for each in await self.away() if is_under(place, each)), None)
            if away is not None:
                raise UsageError(
                    f"{visible(away)} is in the library and not there now: what was read of it is"
                    " kept and found. Add it again when it is back, or remove it."
                )
            raise UsageError(
                f"There is no file and no folder at {visible(place)}, or it cannot be opened."
            )
        is_folder = path.is_dir()
        if not is_folder and not sight.files:
            raise UsageError(f"{visible(place)} is neither a folder nor a file that can be read.")
        check_name(collection)
        async with self._looking:
            root = await self._roots.take_in(path, is_folder=is_folder)
            if collection:
                await self._store.run(lambda tables: collect(tables, collection, place))
            if password:
                # What is new may be read while the rest is still looked at.
                self._intake.note_password(place, password)
            await self._roots.look_at(root, is_asked=True)
            states: tuple[FileState, ...] = ()
            if tries_again:
                states = TRIED_AGAIN if is_folder else ASKED_FOR
            if password:
                states = (*states, FileState.NEEDS_PASSWORD)
            await self._store.run(lambda tables: wait_again(tables, place, states))
            if password:
                # What was read meanwhile may have come to its end, and forgotten it.
                self._intake.note_password(place, password)
        self._intake.go_on()
        self._intake.background.wake()
        return sight

    async def remove(self, path: Path, *, collection: str = "") -> int:
        """Take a place out of the library with all that was read of it, or out of one collection
        only; how many files left the library. The files themselves stay. Raises UsageError."""
        place = str(path)
        if collection:
            if not await self._store.run(lambda tables: take_out(tables, collection, place)):
                raise UsageError(f"{visible(place)} is not in the collection {collection!r}.")
            return 0
        async with self._looking:
            num_files = await self._roots.leave(place)
        await self.tidy()
        return num_files

    async def away(self) -> list[str]:
        """The places that were added and are not there now, whether or not they are followed."""
        there = await self.ask(roots)

        def look_for_each() -> list[str]:
            return [each.path for each in there if is_away(Path(each.path), each.identity)]

        return await asyncio.to_thread(look_for_each)

    async def look(self, place: Path | None = None) -> None:
        """See what has changed in every root, or in those that this place touches; what is new
        is read in the background."""
        async with self._looking:
            for root in await self.ask(roots):
                if place is None or is_under(str(place), root.path):
                    await self._roots.look_at(root)
        self._intake.background.wake()

    async def read_again(self, place: Path) -> None:
        """Read all that lies there once more, in the background. Raises UsageError."""

        def again(tables: Tables) -> None:
            check_place(tables, str(place))
            read_again(tables, str(place))

        await self._store.run(again)
        self._intake.go_on()
        self._intake.background.wake()

    async def read_pictures(self, place: Path) -> None:
        """Read those files there once more that have pages for OCR, in the background."""
        await self._store.run(lambda tables: read_unread(tables, str(place)))
        self._intake.go_on()
        self._intake.background.wake()

    async def collect(self, name: str, place: Path) -> None:
        """Put a place of the library into a collection, which is made where there is none. Raises
        UsageError."""

        def put(tables: Tables) -> None:
            check_place(tables, str(place))
            collect(tables, name, str(place))

        await self._store.run(put)

    async def ask(self, work: Callable[[Tables], Answer]) -> Answer:
        """What the tables say, without waiting for a file that is read."""
        return await self._finder.run(work)

    def is_own(self, path: Path) -> bool:
        """Whether it belongs to Inglenook itself. Asks the disk where links lead."""
        return self._roots.is_own(path)

    def roots_moved(self) -> asyncio.Event:
        """Set when a root has come or gone; ask for the next one then."""
        return self._roots.moved()

    async def page(self, document_id: int, number: int, stretch: Stretch | None = None) -> PageView:
        """Raises UsageError for what is not there."""
        return await self.ask(lambda tables: page_view(tables, document_id, number, stretch))

    async def picture(self, view: PageView, password: str = "") -> PagePicture:
        """How that page looks, with what is meant of it boxed. Raises Unreadable."""
        return await self._pictures.of(view, password)

    async def find(
        self, question: str, *, collections: Iterable[str] = (), limit: int = NUM_HITS
    ) -> Found:
        """The best places for a question, in all of the library or in some collections. Raises
        UsageError for a collection that is not there."""
        names = tuple(collections)
        meant = await self.embeddings.meant(question)

        def ask(tables: Tables) -> Found:
            condition, values = files_in(tables, names)
            return self._search.find(tables, question, condition, values, limit, meant)

        return await self.ask(ask)

    async def look_for(
        self, question: str, scope: Scope, limit: int = NUM_HITS, legs: Legs = Legs.BOTH
    ) -> Looked:
        """As `find`, in what a conversation asks. Raises UsageError for a collection that is not
        there."""

        meant = None if legs is Legs.WORDS else await self.embeddings.meant(question)

        def ask(tables: Tables) -> Looked:
            condition, values = files_in(tables, scope.collections, scope.paths)
            found = self._search.find(tables, question, condition, values, limit, meant, legs)
            return Looked(
                found,
                num_documents(tables, condition, values),
                num_waiting(tables, condition, values),
            )

        return await self.ask(ask)

    async def whole(self, scope: Scope) -> WholeText | None:
        """The one document with text that is there to be asked, all of it, to be looked at. None:
        there is none, or there are more. Raises UsageError for a collection that is not there."""

        def ask(tables: Tables) -> WholeText | None:
            condition, values = files_in(tables, scope.collections, scope.paths)
            document_id = only_document(tables, condition, values)
            if document_id is None:
                return None
            return whole_text(tables, document_id, self._fences, condition, values)

        return await self.ask(ask)

    async def mark_whole(self, read: WholeText) -> WholeText | None:
        """As a model reads it now, which may keep something of it: that is noted, and its fence
        stays. None: it has gone."""
        if read.is_marked:
            return read
        fence = await self._store.run(lambda tables: mark_whole(tables, read.whole))
        if fence is None:
            return None
        return replace(read, whole=replace(read.whole, fence=fence), is_marked=True)

    async def num_documents(self, scope: Scope) -> int:
        """How many with text are there to be asked. Raises UsageError for a collection that is not
        there."""

        def ask(tables: Tables) -> int:
            return num_documents(tables, *files_in(tables, scope.collections, scope.paths))

        return await self.ask(ask)

    async def whole_with(self, sha256: str) -> WholeText | None:
        """The document with these bytes, all of it. None: it has gone, or changed."""

        def ask(tables: Tables) -> WholeText | None:
            document_id = document_with(tables, sha256)
            return None if document_id is None else whole_text(tables, document_id, self._fences)

        return await self.ask(ask)

    async def ever_read_whole(self) -> list[str]:
        """By their SHA-256, the documents that a model may have kept something of."""
        return await self.ask(ever_read_whole)

    async def check(self, content: str, question: str, quotations: Sequence[Quotation]) -> Checked:
        """Which passages bear an answer out; what of it none does."""
        return await self.ask(
            lambda tables: self._search.check(tables, content, question, quotations)
        )

    async def rested(self, timeout_s: float) -> None:
        """Wait until nothing is being read, or for so many seconds. Raises what has ended the
        reading, such as a full disk."""
        await self._intake.background.rested(timeout_s)

    async def settled(self) -> None:
        """Wait until everything that waits was read, and what was deleted has left the disk."""
        await self._intake.background.settled()
        await self.tidy()

    async def tidy(self) -> None:
        """Let nothing of what was deleted stay in the index's file."""
        if await self._store.run(merge_index):
            # Where somebody reads now, the log keeps it until the next opening.
            await self._store.empty_log()

    async def close(self) -> None:
        for task in (self._following, self._warming):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        await self._intake.close()
        await self.embeddings.close()
        await self._pictures.close()
        await asyncio.to_thread(self._finder.close)
        await asyncio.to_thread(self._store.close)
