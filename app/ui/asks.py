"""At the message box: which of the user's files the next questions are asked of, and whether one
is read from its beginning to its end."""

import json
from collections.abc import Iterable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import gradio as gr

from app.amounts import bytes_in_words, counted
from app.chat.message import Conversation
from app.chat.sight import WholeSight
from app.chat.whole_reading import room_for
from app.documents.collections import collections
from app.documents.moves import Move
from app.documents.rows import path_from
from app.documents.scope import WHOLE_LIBRARY, Scope
from app.documents.whereabouts import Whereabouts, whereabouts
from app.ui.boundary import told
from app.ui.documents import name_of
from app.ui.room import Services
from app.ui.verbatim import show_verbatim
from app.visible import visible
from engine.errors import HistoryError, InglenookError, NotFound, UsageError

NONE = ""
NO_FILES = "Files: none"
GONE = " (gone)"
MOST_NAMED = 3


class Asks:
    """A list of choices. Built inside the page's Blocks.

    `choice` is the open conversation's, or what a new one starts with, as text; `dropped` is where
    the page's script says which files of the library were dropped on the chat. `whole` and `cost`
    are shown where the choice is one document, `state` where something of it is gone or has another
    name by now: the script has that looked for in `told`, and only where it is something else than
    what is shown, which is `mark`, `stale` has it shown.
    """

    def __init__(self, services: Services) -> None:
        self.services = services
        self.choice = gr.Dropdown(
            [(NO_FILES, NONE)],
            value=NONE,
            elem_id="asks",
            label="Which of your files are asked",
            show_label=False,
            container=False,
            filterable=False,
            scale=0,
        )
        self.dropped = gr.Textbox(elem_id="asks_dropped", label="Files dropped on the chat")
        self.told = gr.Textbox(elem_id="asks_told", label="When to look where the files are")
        self.stale = gr.Textbox("", elem_id="asks_stale", label="Files to be shown anew")
        self.mark = gr.State(None)
        self.outputs = [self.choice]

    def build_whole(self) -> None:
        """Below the row of choices, where there is room for what it costs."""
        with gr.Row(elem_id="asks_state_row", visible=False) as self.state_row:
            self.state = gr.Markdown(elem_id="asks_state")
            self.leave = gr.Button("", size="sm", elem_id="asks_leave", scale=0, min_width=0)
        with gr.Row(elem_id="whole_row", visible=False) as self.whole_row:
            self.whole = gr.Checkbox(
                elem_id="whole", label="Read all of it", container=False, scale=0, min_width=0
            )
            self.cost = gr.Markdown(elem_id="whole_cost")
            self.sum_up = gr.Button("Sum it up", size="sm", elem_id="sum_up", scale=0, min_width=0)
        self.whole_outputs = [self.whole_row, self.whole, self.cost]
        state_outputs = [self.choice, self.mark, self.state_row, self.state, self.leave]
        self.look_outputs = [*state_outputs, *self.whole_outputs]

    async def show(self, conversation: Conversation | None) -> list[Any]:
        """Values for `outputs`, with the choice of a conversation."""
        if conversation is None or conversation.documents is None:
            return [_update(None, ())]
        where = await self._where(conversation.documents, conversation)
        return [_update(where.scope, (), where)]

    @told
    async def offer(self, choice: str) -> Any:
        """The choices as they are now."""
        documents = scope_from(choice)
        where = None if documents is None else await self._where(documents)
        return _update(documents, await self._collections(), where)

    @told
    async def choose(self, conversation_id: str | None, choice: str) -> Any:
        """Keep it with the conversation, if there is one yet."""
        documents = scope_from(choice)
        if conversation_id is not None:
            await self.services.conversations.set_documents(conversation_id, documents)
        where = None if documents is None else await self._where(documents)
        return _update(documents, await self._collections(), where)

    async def check(
        self, told: str, conversation_id: str | None, choice: str, mark: str | None
    ) -> Any:
        """The next value of `stale`, or none where all that is shown is so."""
        try:
            documents = scope_from(choice)
            if documents is None:
                return gr.skip()
            where = await self._where(documents, await self._find(conversation_id))
        except InglenookError:
            return gr.skip()
        return gr.skip() if repr(where) == mark else told

    @told
    async def look(self, conversation_id: str | None, choice: str) -> list[Any]:
        """Where the files are, and what reading the one document whole takes. Values for
        `look_outputs`."""
        documents = scope_from(choice)
        if documents is None:
            hidden = gr.update(visible=False)
            return [gr.skip(), None, hidden, "", gr.skip(), hidden, gr.skip(), gr.skip()]
        where = await self._where(documents, await self._find(conversation_id))
        chosen = gr.skip()
        if where.scope != documents or not where.is_whole:
            chosen = _update(where.scope, await self._collections(), where)
        said = state_in_words(where)
        leave = gr.update(value=leaving_in_words(where), visible=not where.is_whole)
        state = [chosen, repr(where), gr.update(visible=bool(said)), said, leave]
        return [*state, *await self._look_whole(conversation_id, where)]

    async def _look_whole(self, conversation_id: str | None, where: Whereabouts) -> list[Any]:
        """Values for `whole_outputs`."""
        documents = where.rest
        sight = None
        if documents is not None and not documents.is_whole:
            sight = await self.services.sights.whole(documents, conversation_id)
        is_wanted = documents is not None and documents.as_whole
        if sight is None and not is_wanted:
            return [gr.update(visible=False), gr.skip(), gr.skip()]
        cost = None if sight is None else sight.cost
        may_be = cost is None or cost.fits or is_wanted
        ticked = gr.update(value=is_wanted, interactive=may_be)
        return [gr.update(visible=True), ticked, "" if sight is None else _cost(sight)]

    @told
    async def ask_without(self, conversation_id: str | None, choice: str) -> Any:
        """Leave out what is gone. The next value of `choice`."""
        documents = scope_from(choice)
        if documents is None:
            return gr.skip()
        return await self.choose(conversation_id, text_of((await self._where(documents)).rest))

    async def _where(
        self, documents: Scope, conversation: Conversation | None = None
    ) -> Whereabouts:
        """Where the files are now; a conversation asks them by their new names from now on, and
        hears of those since its last message."""
        since = inf if conversation is None else conversation.updated_at
        try:
            where = await self.services.documents.ask(
                lambda tables: whereabouts(tables, documents, since)
            )
        except HistoryError:
            # Who asks the library hears what is wrong with it.
            return Whereabouts(documents)
        if conversation is not None and where.scope != documents:
            conversation_id = conversation.conversation_id
            await self.services.conversations.set_documents(conversation_id, where.scope)
        return where

    async def _find(self, conversation_id: str | None) -> Conversation | None:
        if conversation_id is None:
            return None
        try:
            return await self.services.conversations.get(conversation_id)
        except NotFound:
            return None

    @told
    async def read_whole(self, conversation_id: str | None, choice: str, is_wanted: bool) -> Any:
        """Keep with the conversation how its document is read. The next value of `choice`."""
        documents = scope_from(choice)
        if documents is None or documents.as_whole == is_wanted:
            return gr.skip()
        return await self.choose(conversation_id, text_of(replace(documents, as_whole=is_wanted)))

    @told
    async def take(self, conversation_id: str | None, dropped: str, choice: str) -> list[Any]:
        """Ask of the dropped files, too, unless all files are asked already; or of one place only,
        which was chosen among the documents. Values for `choice` and `dropped`."""
        paths = tuple(path_from(path) for path in _paths(dropped, "paths"))
        only = tuple(path_from(path) for path in _paths(dropped, "only"))
        documents = scope_from(choice)
        if not (paths or only):
            return [gr.skip(), gr.skip()]
        if only:
            documents = Scope(paths=only)
        elif documents is None:
            documents = Scope(paths=paths)
        elif not documents.is_whole:
            all_paths = dict.fromkeys((*documents.paths, *paths))
            documents = Scope(documents.collections, tuple(all_paths), documents.as_whole)
        return [await self.choose(conversation_id, text_of(documents)), ""]

    async def _collections(self) -> Iterable[str]:
        return await self.services.documents.ask(collections)


def text_of(documents: Scope | None) -> str:
    return NONE if documents is None else json.dumps(documents.as_json())


def scope_from(choice: str | None) -> Scope | None:
    """Raises UsageError for what is no choice."""
    if not choice:
        return None
    try:
        return Scope.from_json(json.loads(choice))
    except (ValueError, RecursionError) as error:
        raise UsageError("It is not known which files are meant: choose them again.") from error


def state_in_words(where: Whereabouts) -> str:
    """What is not as it was when the files were chosen, or nothing."""
    if not where.is_whole:
        gone = [f"the collection {each}" for each in where.gone_collections]
        gone += [name_of(str(Path(each))) for each in where.gone]
        are = "is" if len(gone) == 1 else "are"
        it = "it was" if len(gone) == 1 else "they were"
        names = show_verbatim(f"{', '.join(gone[:MOST_NAMED])}")
        others = len(gone) - MOST_NAMED
        more = f" and {others:,} more" if others > 0 else ""
        return (
            f"<p>{names}{more} {are} not in your library any more: {it} deleted, moved away, or"
            " taken out of it.</p>"
        )
    if not where.moves:
        return ""
    return "".join(f"<p>{_moved(move)}</p>" for move in where.moves[:MOST_NAMED])


def _moved(move: Move) -> str:
    before, now = (name_of(str(Path(each))) for each in move)
    if before == now:
        now = visible(move.now)
        return show_verbatim(f"{before} has another folder now, and is asked there: {now}.")
    return show_verbatim(f"{before} has a new name, and is asked by it: {now}.")


def leaving_in_words(where: Whereabouts) -> str:
    num_gone = len(where.gone) + len(where.gone_collections)
    return "Ask without it" if num_gone == 1 else "Ask without them"


def label_of(documents: Scope | None) -> str:
    if documents is None:
        return NO_FILES
    if documents.is_whole:
        return "Files: all"
    lead = "Whole file" if documents.as_whole else "Files"
    names = list(documents.collections)
    if len(documents.paths) == 1:
        names.append(name_of(str(Path(documents.paths[0]))))
    elif documents.paths:
        names.append(counted(len(documents.paths), "place"))
    return f"{lead}: {', '.join(names)}"


def _cost(sight: WholeSight) -> str:
    """Before anything is read."""
    cost, name, pages = sight.cost, show_verbatim(sight.name), counted(sight.num_pages, "page")
    if cost is None:
        return f"<p>{pages}. What that takes is known when the model is loaded.</p>"
    if not cost.fits:
        return (
            f"<p>{name} has {cost.num_tokens:,} tokens, and {max(cost.most, 0):,} fit beside a"
            f" question and its answer: it is searched. {room_for(cost)}</p>"
        )
    return (
        f"<p>{pages}, {cost.num_tokens:,} of {cost.most:,} tokens that fit,"
        f" {bytes_in_words(sight.kv_bytes)} of memory. It is read once; after that questions about"
        " it are answered at once.</p>"
    )


def _update(documents: Scope | None, named: Iterable[str], where: Whereabouts | None = None) -> Any:
    each: list[Scope | None] = [None, WHOLE_LIBRARY]
    each += [Scope(collections=(name,)) for name in named]
    if documents not in each:
        each.append(documents)
    classes = [] if documents is None else ["chosen"]
    is_gone = where is not None and where.rest is None
    classes += ["gone"] if is_gone else []
    gone = documents if is_gone else None
    choices = [
        (f"{label_of(scope)}{GONE}" if scope and scope == gone else label_of(scope), text_of(scope))
        for scope in each
    ]
    return gr.update(choices=choices, value=text_of(documents), elem_classes=classes)


def _paths(dropped: str, name: str) -> list[str]:
    try:
        told = json.loads(dropped or "{}")
    except (ValueError, RecursionError):
        told = {}
    found = told.get(name) if isinstance(told, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return []
    return found
