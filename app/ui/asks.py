"""At the message box: which of the user's files the next questions are asked of."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gradio as gr

from app.amounts import counted
from app.documents.collections import collections
from app.documents.rows import path_from
from app.documents.scope import WHOLE_LIBRARY, Scope
from app.ui.boundary import told
from app.ui.documents import name_of
from app.ui.room import Services
from engine.errors import UsageError

NONE = ""
NO_FILES = "Files: none"


class Asks:
    """A list of choices. Built inside the page's Blocks.

    `choice` is the open conversation's, or what a new one starts with, as text; `dropped` is where
    the page's script says which files of the library were dropped on the chat.
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
    async def take(self, conversation_id: str | None, dropped: str, choice: str) -> list[Any]:
        """Ask of the dropped files, too, unless all files are asked already. Values for `choice`
        and `dropped`."""
        paths = tuple(path_from(path) for path in _paths(dropped))
        documents = scope_from(choice)
        if not paths:
            return [gr.skip(), gr.skip()]
        if documents is None:
            documents = Scope(paths=paths)
        elif not documents.is_whole:
            all_paths = dict.fromkeys((*documents.paths, *paths))
            documents = Scope(documents.collections, tuple(all_paths))
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
    names = list(documents.collections)
    if len(documents.paths) == 1:
        names.append(name_of(str(Path(documents.paths[0]))))
    elif documents.paths:
        names.append(counted(len(documents.paths), "place"))
    return f"Files: {', '.join(names)}"


def _update(documents: Scope | None, named: Iterable[str]) -> Any:
    each: list[Scope | None] = [None, WHOLE_LIBRARY]
    each += [Scope(collections=(name,)) for name in named]
    if documents not in each:
        each.append(documents)
    classes = [] if documents is None else ["chosen"]
    choices = [(label_of(scope), text_of(scope)) for scope in each]
    return gr.update(choices=choices, value=text_of(documents), elem_classes=classes)


def _paths(dropped: str) -> list[str]:
    try:
        found = json.loads(dropped or "[]")
    except (ValueError, RecursionError):
        found = []
    is_list = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return found if is_list else []
