"""How full the context is, and what to do when a message no longer fits."""

from typing import Any

import gradio as gr

from app.amounts import bytes_in_words, turns
from app.chat.context import Outlook
from app.chat.message import Overflow
from app.chat.sight import Fill
from app.memory import Memory
from app.ui.room import Services

WORDS_PER_TOKEN = 0.75
CHOICES = (
    ("Ask me", Overflow.ASK.value),
    ("Leave out the oldest turns", Overflow.DROP.value),
    ("Sum up the oldest turns", Overflow.SUMMARISE.value),
)


class Meter:
    """The bar at the message box. Built inside the page's Blocks."""

    def __init__(self) -> None:
        self.bar = gr.Markdown(elem_id="meter", visible=False)

    def show(self, fill: Fill | None, is_empty: bool) -> Any:
        """`is_empty`: nothing was said or typed yet."""
        if fill is None:
            return gr.update(visible=False)
        return gr.update(visible=True, value=meter(fill, is_empty))


def meter(fill: Fill, is_empty: bool = False) -> str:
    """The bar and its words; colour is never the only sign."""
    state = "over" if fill.is_over else "near" if fill.is_near else "calm"
    if is_empty and state == "calm" and not fill.num_whole:
        # What is in it already is the system prompt and the template's own marks.
        num_words = round(fill.max_tokens * WORDS_PER_TOKEN, -2)
        return (
            f'<div class="meter calm"><span>Room for {fill.max_tokens:,} tokens, about'
            f" {num_words:,.0f} words</span></div>"
        )
    words = f"{fill.num_tokens:,} of {fill.max_tokens:,} tokens"
    room = fill.max_tokens - fill.limit
    more = {
        "over": f": too much beside an answer of {room:,}",
        "near": ": nearly full",
        "calm": "",
    }[state]
    return (
        f'<div class="meter {state}">'
        f'<meter min="0" max="{fill.max_tokens}"'
        f' value="{min(fill.num_tokens, fill.max_tokens)}">{words}</meter>'
        f"<span>{words}{more}</span></div>"
    )


class OverflowPanel:
    """The question that is asked when a conversation has outgrown the context, before anything is
    sent. Built inside the page's Blocks."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.larger_tokens = gr.State(None)
        with gr.Column(elem_id="overflow", visible=False) as self.box:
            self.words = gr.Markdown()
            with gr.Row(elem_id="overflow_choices") as self.buttons:
                self.drop = gr.Button("", size="sm", elem_id="overflow_drop")
                self.summarise = gr.Button("", size="sm", elem_id="overflow_summarise")
                self.larger = gr.Button("", size="sm", elem_id="overflow_larger")
                self.cancel = gr.Button("Cancel", size="sm", elem_id="overflow_cancel")
        self.outputs = [
            self.box,
            self.words,
            self.buttons,
            self.drop,
            self.summarise,
            self.larger,
            self.larger_tokens,
        ]

    def ask(self, outlook: Outlook) -> list[Any]:
        """Values for `outputs`: the question with its figures."""
        memory = self.services.memory
        larger = outlook.larger
        if larger is not None and memory is not None and not memory.fits(larger):
            larger = None
        oldest = turns(outlook.num_left_out, "oldest")
        summed_up = turns(outlook.num_summed_up, "oldest")
        return [
            gr.update(visible=True),
            question(outlook),
            gr.update(visible=True),
            f"Leave out the {oldest} ({outlook.num_tokens_left_out:,} tokens)",
            f"Sum up the {summed_up}",
            gr.update(value=_offer(larger, memory), visible=larger is not None),
            larger,
        ]

    def loading(self, larger: int) -> list[Any]:
        """Values for `outputs` while the model is loaded again."""
        words = f"<p>Loading the model with a context of {larger:,} tokens…</p>"
        return [gr.update(visible=True), words, gr.update(visible=False), *[gr.skip()] * 4]

    def hide(self) -> list[Any]:
        return [gr.update(visible=False), *[gr.skip()] * 6]


def question(outlook: Outlook) -> str:
    return (
        '<h3 id="overflow_title">This conversation has outgrown the model’s context</h3>'
        f"<p>With your message it needs {outlook.num_tokens:,} tokens, and {outlook.limit:,} fit"
        " beside an answer. Nothing has been sent yet. What the model should no longer see stays"
        " in the transcript, and your choice holds for the rest of this conversation.</p>"
    )


def _offer(larger: int | None, memory: Memory | None) -> str:
    if larger is None:
        return ""
    if memory is None:
        return f"Larger context: {larger:,} tokens"
    more = memory.bytes_of(larger) - memory.context_bytes
    return f"Larger context: {larger:,} tokens ({bytes_in_words(more)} more memory)"
