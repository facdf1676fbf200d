"""The line above the chat that says what is not as usual: safe mode, or a new start by itself.

Its buttons are for the page's script, which asks the launcher.
"""

import gradio as gr

from app.launch.start_facts import StartFacts
from app.safe_mode import WORDS
from app.ui.verbatim import show_verbatim

STARTED_AGAIN = "It was started again, and your conversations are kept."


class StartNote:
    """Widgets without handlers. Built inside the page's Blocks."""

    def __init__(self, start: StartFacts) -> None:
        words = " ".join(start_words(start))
        with gr.Row(elem_id="start_note", visible=bool(words)):
            gr.Markdown(show_verbatim(words), elem_id="start_words")
            if start.is_safe and start.is_launched:
                gr.Button("Start as usual", size="sm", elem_id="start_as_usual", scale=0)
            if start.crash:
                gr.Button("Copy report", size="sm", elem_id="copy_report", scale=0)
            if not start.is_safe:
                # Safe mode is said as long as it lasts.
                gr.Button("Dismiss", size="sm", elem_id="dismiss_note", scale=0)


def start_words(start: StartFacts) -> list[str]:
    """Sentences; none when all is as usual."""
    said = [start.crash, STARTED_AGAIN] if start.crash else []
    if start.note:
        said.append(start.note)
    if start.is_safe:
        said.append(WORDS)
        if not start.is_launched:
            said.append("Start Inglenook without --safe to leave it.")
    return said
