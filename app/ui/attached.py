"""Pictures and sounds at the message box, and above the messages that they were sent with."""

import json
from html import escape
from typing import Any

import gradio as gr

from app.chat.message import Message
from app.media.attachment import Attachment
from app.media.pending import Pending
from app.ui.verbatim import show_verbatim
from engine.errors import UsageError
from engine.media import SAMPLE_RATE, MediaKind

PLACE = "/_app/attachments"


class Attached:
    """What is sent with the next message. Built inside the page's Blocks; the page's script brings
    the files and keeps the ids."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending
        # All of it is ours, and the names are spelled so that nothing in them is a mark.
        self.strip = gr.Markdown(elem_id="attached_strip", sanitize_html=False)
        self.ids = gr.Textbox(elem_id="attached", label="Pictures and sounds of this message")

    def all(self, ids: str) -> tuple[Attachment, ...]:
        """Raises UsageError when one of them is gone."""
        return self._pending.all(_numbers(ids))

    def sent(self, ids: str) -> None:
        self._pending.forget(_numbers(ids))

    async def show(self, ids: str) -> Any:
        """Values for the strip; one that is gone is left out."""
        found = [(number, self._pending.get(number)) for number in _numbers(ids)]
        return "".join(_chip(number, each) for number, each in found if each is not None)


def shown_with(message: Message) -> str:
    """What stands above the text of a message, or nothing."""
    message_id = escape(message.message_id)
    shown = [
        _in_chat(each, f"{PLACE}/{message_id}/{number}")
        for number, each in enumerate(message.attachments)
    ]
    return f'<p class="shown">{"".join(shown)}</p>\n\n' if shown else ""


def _in_chat(attachment: Attachment, place: str) -> str:
    name = show_verbatim(attachment.name)
    if attachment.kind is MediaKind.IMAGE:
        inner = f'<img src="{place}/preview" alt="{name}" title="{name}">'
    else:
        inner = f"{name}, {duration(attachment)}"
    return f'<a href="{place}/whole" target="_blank">{inner}</a>'


def duration(attachment: Attachment) -> str:
    seconds = round(attachment.width / SAMPLE_RATE)
    return f"{seconds // 60}:{seconds % 60:02d}"


def _chip(number: str, attachment: Attachment) -> str:
    name = show_verbatim(attachment.name)
    if attachment.kind is MediaKind.IMAGE:
        inner = f'<img src="{PLACE}/new/{number}/preview" alt="{name}">'
    else:
        inner = f"<span>{name}, {duration(attachment)}</span>"
    return (
        f'<span class="chip">{inner}<button type="button" data-id="{number}"'
        f' aria-label="Leave out {name}" title="Leave out {name}">×</button></span>'
    )


def _numbers(ids: str) -> list[str]:
    try:
        found = json.loads(ids or "[]")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise UsageError("It is not known what was added to this message: add it again.")
    return [each for each in found if each.isalnum()]
