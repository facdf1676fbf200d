"""At the message box: which of the user's files the next questions are asked of, and whether one
is read from its beginning to its end."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr

from app.amounts import bytes_in_words, counted
from app.chat.sight import WholeSight
from app.chat.whole_reading import room_for
from app.documents.collections import collections
from app.documents.rows import path_from
from app.documents.scope import WHOLE_LIBRARY, Scope
from app.ui.boundary import told
from app.ui.documents import name_of
from app.ui.room import Services
from app.ui.verbatim import show_verbatim
from engine.errors import UsageError

NONE = ""
NO_FILES = "Files: none"


class Asks:
    """A list of choices. Built inside the page's Blocks.

    `choice` is the open conversation's, or what a new one starts with, as text; `dropped` is where
    the page's script says which files of the library were dropped on the chat. `whole` and `cost`
    are shown where the choice is one document.
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
        self.outputs = [self.choice]

    def build_whole(self) -> None:
        """Below the row of choices, where there is room for what it costs."""
        with gr.Row(elem_id="whole_row", visible=False) as self.whole_row:
            self.whole = gr.Checkbox(
                elem_id="whole", label="Read all of it", container=False, scale=0, min_width=0
            )
            self.cost = gr.Markdown(elem_id="whole_cost")
            self.sum_up = gr.Button("Sum it up", size="sm", elem_id="sum_up", scale=0, min_width=0)
        self.whole_outputs = [self.whole_row, self.whole, self.cost]

    def show(self, documents: Scope | None) -> list[Any]:
        """Values for `outputs`, with the choice of a conversation."""
        return [_update(documents, ())]

    @told
    async def offer(self, choice: str) -> Any:
        """The choices as they are now."""
        return _update(scope_from(choice), await self._collections())

    @told
    async def choose(self, conversation_id: str | None, choice: str) -> Any:
        """Keep it with the conversation, if there is one yet."""
        documents = scope_from(choice)
        if conversation_id is not None:
            await self.services.conversations.set_documents(conversation_id, documents)
        return _update(documents, await self._collections())

    @told
    async def look(self, conversation_id: str | None, choice: str) -> list[Any]:
        """What reading the one document whole takes. Values for `whole_outputs`."""
        documents = scope_from(choice)
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


def _update(documents: Scope | None, named: Iterable[str]) -> Any:
    each: list[Scope | None] = [None, WHOLE_LIBRARY]
    each += [Scope(collections=(name,)) for name in named]
    if documents not in each:
        each.append(documents)
    classes = [] if documents is None else ["chosen"]
    choices = [(label_of(scope), text_of(scope)) for scope in each]
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
