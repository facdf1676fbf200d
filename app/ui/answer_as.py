"""At the message box: how the next answers come, and the way to change it."""

from typing import Any

import gradio as gr

from app.chat.answer_form import AnswerForm
from app.ui.formed import name_of


class AnswerAs:
    """A button and what a tab remembers of it. Built inside the page's Blocks.

    `form` is the open conversation's, or what a new one starts with.
    """

    def __init__(self) -> None:
        self.form = gr.State(None)
        self.button = gr.Button(label_of(None), size="sm", elem_id="answer_as", scale=0)
        self.outputs = [self.form, self.button]

    def show(self, form: AnswerForm | None) -> list[Any]:
        """Values for `outputs`."""
        is_text = form is None
        classes = [] if is_text else ["chosen"]
        return [form, gr.update(value=label_of(form), elem_classes=classes)]


def label_of(form: AnswerForm | None) -> str:
    return f"Answer as: {'Text' if form is None else name_of(form)}"
