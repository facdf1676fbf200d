"""The answers to one message: which of them is shown, and the way to the others."""

from collections.abc import Sequence
from typing import Any

import gradio as gr

Updates = dict[Any, Any]


class Versions:
    """Widgets below the last answer. Built inside the page's Blocks."""

    def __init__(self) -> None:
        with gr.Row(visible=False, elem_id="versions") as self.row:
            self.before = gr.Button("‹", size="sm", elem_id="version_before")
            self.words = gr.Markdown(elem_id="version_words")
            self.after = gr.Button("›", size="sm", elem_id="version_after")
        self.outputs = [self.row, self.before, self.words, self.after]

    def show(self, siblings: Sequence[str], shown_id: str) -> Updates:
        """`siblings` are the ids of all answers to the message, oldest first."""
        place = siblings.index(shown_id) if shown_id in siblings else 0
        return {
            self.row: gr.update(visible=len(siblings) > 1),
            self.before: gr.update(interactive=place > 0),
            self.words: f"Answer {place + 1} of {len(siblings)}",
            self.after: gr.update(interactive=place + 1 < len(siblings)),
        }


def beside(siblings: Sequence[str], shown_id: str, step: int) -> str:
    """The one that is so many places further; at an end it is the last one there."""
    place = siblings.index(shown_id) + step
    return siblings[max(0, min(place, len(siblings) - 1))]
