"""The user's own files, for the page's sheet: which there are, what is in them, what is to be done.

No other site reaches this: the guard refuses those, and all but looking at the list is taken only
with the page's own Origin.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from app.documents.citation import Span
from app.documents.collections import collections
from app.documents.document import FileState, Unreadable
from app.documents.embedding.choice import NAMES, NONE, EmbedderChoice
from app.documents.library import Library
from app.documents.ocr import is_installed, remedy
from app.documents.overview import (
    Wanted,
    backlog,
    cost_of,
    cost_of_unread,
    counts_by_root,
    overview,
    unread_by_root,
)
from app.documents.page_view import PageView, Stretch, document_of, place_of, stretch_of
from app.documents.quotation import Quotation
from app.documents.roots import check_place, root_alone
from app.documents.rows import path_from, roots, stored
from app.ui import documents as words
from app.ui.room import Services
from app.visible import visible
from app.web.asked import path_named, path_typed, text_of
from app.web.desk import Action, add_doors, answered
from engine.errors import InglenookError, NotFound, UsageError

LONGEST_NAME = 60
NUM_HITS = 20
BOXES_HEADER = "inglenook-boxes"


def documents_router(services: Services) -> APIRouter:
    """`GET /_app/documents` and what else there is to see, `POST /_app/documents/ACTION`."""
    router = APIRouter(prefix="/_app/documents")
    desk = DocumentDesk(services)

    @router.get("")
    async def here() -> Response:
        return await answered(desk.here())

    @router.get("/progress")
    async def progress() -> Response:
        return await answered(desk.progress())

    add_doors(router, desk)
    return router


class DocumentDesk:
    """What can be asked for. Owned by the event loop."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def actions(self) -> dict[str, Action]:
        return {
            "files": self.files,
            "search": self.search,
            "page": self.page,
            "picture": self.picture,
            "add": self.add,
            "announce": self.announce,
            "unlock": self.unlock,
            "pause": self.pause,
            "go_on": self.go_on,
            "remove": self.remove,
            "again": self.again,
            "pictures": self.pictures,
            "collect": self.collect,
            "take_out": self.take_out,
            "embedder": self.embedder,
        }

    @property
    def _library(self) -> Library:
        # Opened by the first who asks.
        return self._services.documents

    async def here(self) -> dict[str, Any]:
        library, received = self._library, str(self._services.received.folder)
        there, counts, unread, named = await library.ask(
            lambda tables: (
                roots(tables),
                counts_by_root(tables),
                unread_by_root(tables),
                collections(tables),
            )
        )
        return {
            "places": words.place_rows(there, counts, unread, named, received),
            "collections": words.collection_rows(named, received),
            "progress": await self.progress(),
            "meaning": words.meaning_row(await library.embeddings.status()),
        }

    async def progress(self) -> dict[str, Any]:
        library = self._library
        left = await library.ask(backlog)
        return words.progress(library.at_work, left, library.is_paused)

    async def files(self, given: dict[str, Any]) -> dict[str, Any]:
        wanted = Wanted(
            place=str(_path(given)) if given.get("path") else "",
            collection=str(given.get("collection") or ""),
            state=_state(given),
            name=str(given.get("name") or ""),
        )
        found, named = await self._library.ask(
            lambda tables: (overview(tables, wanted), collections(tables))
        )
        return words.file_rows(found, named, str(self._services.received.folder))

    async def search(self, given: dict[str, Any]) -> dict[str, Any]:
        collection = str(given.get("collection") or "")
        names = (collection,) if collection else ()
        text = _text(given, "text")
        return words.hit_rows(await self._library.find(text, collections=names, limit=NUM_HITS))

    async def page(self, given: dict[str, Any]) -> dict[str, Any]:
        """The text of a page, and what is the matter with its file now; of a page, or of what an
        answer stands on."""
        if given.get("answer") is not None:
            return await self._quoted(given)
        stretch = _stretch(given)
        return await self._shown(await self._view(given, stretch), stretch)

    async def _quoted(self, given: dict[str, Any]) -> dict[str, Any]:
        quotation, part = await self._quotation(given)
        library = self._library
        document = await library.ask(lambda tables: document_of(tables, quotation.sha256))
        if document is None:
            return words.quotation_row(quotation)
        bare = await library.page(document, quotation.page)
        stretch = stretch_of(quotation, part, bare.text)
        return await self._shown(await library.page(document, stretch.page, stretch), stretch)

    async def _shown(self, view: PageView, stretch: Stretch | None) -> dict[str, Any]:
        notice = ""
        try:
            await place_of(view)
        except Unreadable as problem:
            notice = str(problem)
        return words.page_row(view, notice, stretch)

    async def _quotation(self, given: dict[str, Any]) -> tuple[Quotation, Span | None]:
        """What an answer was given, and the part of it that a citation means."""
        conversations = self._services.conversations
        number, citation = given.get("quotation"), given.get("citation")
        try:
            answer = (await conversations.path(_text(given, "answer")))[-1]
            # Of a deleted conversation nothing is given out any more.
            await conversations.get(answer.conversation_id)
        except NotFound as error:
            raise UsageError("This answer is gone: it may have been deleted.") from error
        grounds = answer.grounds
        if grounds is None or type(number) is not int or type(citation) is not int:
            raise UsageError("It is not known which passage is meant: open it again.")
        quotation = grounds.quotation(number)
        if quotation is None:
            raise UsageError("This answer was given no such passage.")
        is_known = 1 <= citation <= len(grounds.citations)
        part = grounds.citations[citation - 1].quote if is_known else None
        return quotation, part

    async def picture(self, given: dict[str, Any]) -> Response:
        """The page as PNG, with the places of the words in a header."""
        try:
            view = await self._view(given, _stretch(given))
            picture = await self._library.picture(view, str(given.get("password") or ""))
        except Unreadable as problem:
            needs_password = problem.state is FileState.NEEDS_PASSWORD
            refused = visible(str(problem))
            return JSONResponse({"refused": refused, "needs_password": needs_password})
        except InglenookError as error:
            return JSONResponse({"refused": visible(str(error)), "needs_password": False})
        boxes = [(box.left, box.top, box.width, box.height) for box in picture.boxes]
        headers = {BOXES_HEADER: json.dumps(boxes), "cache-control": "no-store"}
        return Response(picture.png, headers=headers, media_type="image/png")

    async def _view(self, given: dict[str, Any], stretch: Stretch | None) -> PageView:
        document, number = given.get("document"), given.get("number")
        if type(document) is not int or type(number) is not int:
            raise UsageError("It is not known which page is meant: open it again.")
        return await self._library.page(document, number, stretch)

    async def add(self, given: dict[str, Any]) -> dict[str, Any]:
        """A path on this machine; what lies there stays there."""
        await self._library.add(_whole_path(given))
        return await self.here()

    async def announce(self, given: dict[str, Any]) -> dict[str, Any]:
        """A file that will be dropped: what stands in its way is said before it is sent."""
        num_bytes = given.get("num_bytes")
        if type(num_bytes) is not int:
            raise UsageError("It is not known what will come: choose the file again.")
        self._services.received.check(_text(given, "name"), num_bytes)
        return {}

    async def drop(self, name: str, num_bytes: int, pieces: AsyncIterator[bytes]) -> dict[str, Any]:
        received, library = self._services.received, self._library
        path = await received.take(name, num_bytes, pieces)
        await library.add(received.folder, tries_again=False)
        return {**await self.here(), "added": stored(str(path))}

    async def unlock(self, given: dict[str, Any]) -> dict[str, Any]:
        """With a password, which is forgotten when nothing waits any more."""
        path, password = _path(given), _text(given, "password")
        await self._library.add(path, password=password, tries_again=False)
        return await self.progress()

    async def pause(self, given: dict[str, Any]) -> dict[str, Any]:
        self._library.pause()
        return await self.progress()

    async def go_on(self, given: dict[str, Any]) -> dict[str, Any]:
        self._library.go_on()
        return await self.progress()

    async def remove(self, given: dict[str, Any]) -> dict[str, Any]:
        """Asks first: without `is_sure` it only says what would be done, or why it cannot be."""
        path, received, library = _path(given), self._services.received, self._library
        is_ours = received.has(path)
        if given.get("is_sure") is not True:
            if is_ours:
                await library.ask(lambda tables: check_place(tables, str(path)))
            else:
                root_alone(await library.ask(roots), str(path))
            found = await library.ask(lambda tables: overview(tables, Wanted(place=str(path)), 0))
            question = words.removal_in_words(str(path), found.num_found, is_ours=is_ours)
            return {"question": question}
        if is_ours:
            await asyncio.to_thread(received.delete, path)
        if is_ours and path != received.folder:
            await library.look(path)
            await library.tidy()
        else:
            await library.remove(path)
        return await self.here()

    async def again(self, given: dict[str, Any]) -> dict[str, Any]:
        """Says first what it costs: without `is_sure` nothing is done."""
        path = _path(given)
        if given.get("is_sure") is not True:
            has_ocr = is_installed()
            await self._library.ask(lambda tables: check_place(tables, str(path)))
            cost = await self._library.ask(
                lambda tables: cost_of(tables, str(path), has_ocr=has_ocr)
            )
            return {"question": words.cost_in_words(cost, str(path))}
        await self._library.read_again(path)
        return await self.here()

    async def embedder(self, given: dict[str, Any]) -> dict[str, Any]:
        """Says first what it costs: without `is_sure` nothing is done."""
        model = text_of(given, "path")
        choice = EmbedderChoice(model if model in NAMES else str(_whole_path(given)))
        embeddings, services = self._library.embeddings, self._services
        trial = None if choice.model == NONE else await embeddings.try_out(choice)
        if given.get("is_sure") is not True:
            return {"question": words.embedder_in_words(trial)}
        services.save_settings(services.settings.with_embedder(choice))
        embeddings.background.wake()
        return await self.here()

    async def pictures(self, given: dict[str, Any]) -> dict[str, Any]:
        """Has OCR read the pages without text. Says first what it costs, as `again`."""
        if not is_installed():
            # The whole files would be read again, to no other end than before.
            raise UsageError(f"There is no OCR here, so no page was read. {remedy()}")
        path = _path(given)
        await self._library.ask(lambda tables: check_place(tables, str(path)))
        if given.get("is_sure") is not True:
            cost = await self._library.ask(lambda tables: cost_of_unread(tables, str(path)))
            return {"question": words.ocr_in_words(cost, str(path))}
        await self._library.read_pictures(path)
        return await self.here()

    async def collect(self, given: dict[str, Any]) -> dict[str, Any]:
        await self._library.collect(_collection(given), _path(given))
        return await self.here()

    async def take_out(self, given: dict[str, Any]) -> dict[str, Any]:
        await self._library.remove(_path(given), collection=text_of(given, "name"))
        return await self.here()


def _stretch(given: dict[str, Any]) -> Stretch | None:
    stretch = given.get("stretch")
    if not isinstance(stretch, list) or [type(each) for each in stretch] != [int] * 4:
        return None
    page, page_to, start, end = stretch
    return Stretch(page=page, page_to=page_to, start=start, end=end)


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UsageError("There is nothing to do it with: give a name, a text or a path.")
    return value


def _whole_path(given: dict[str, Any]) -> Path:
    """As a person types it."""
    typed = path_typed(given, "path")
    if not typed.is_absolute():
        raise UsageError(
            f"{visible(str(typed))} is not a whole path: give it from the root of the disk on."
        )
    return Path(os.path.normpath(typed))


def _path(given: dict[str, Any]) -> Path:
    """As the list has it, which is how the tables do."""
    return path_named(path_from(text_of(given, "path")))


def _state(given: dict[str, Any]) -> str:
    state = str(given.get("state") or "")
    if state and state not in [each.value for each in FileState]:
        raise UsageError("There is no such state: choose another one.")
    return state


def _collection(given: dict[str, Any]) -> str:
    name = " ".join(text_of(given, "name").split())
    if len(name) > LONGEST_NAME:
        raise UsageError(
            f"The name of a collection may have {LONGEST_NAME} letters, and this one has"
            f" {len(name)}: give a shorter one."
        )
    return name
