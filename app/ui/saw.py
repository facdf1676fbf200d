"""What the model saw: the exact prompt of one answer, and where it came from."""

from typing import Any

import gradio as gr

from app.amounts import milliseconds
from app.chat.sight import Sight, Stretch
from app.ui.boundary import told
from app.ui.render import timings_of
from app.ui.room import Services
from app.ui.verbatim import show_verbatim
from engine.metrics import Timings


class SawPanel:
    """A sheet over the page. Built inside the page's Blocks.

    A link below an answer names it; the page's script puts the name into `asked`.
    """

    def __init__(self, services: Services) -> None:
        self.services = services
        self.asked = gr.Textbox(elem_id="saw_asked", label="Answer to look into")
        with gr.Column(elem_id="saw", visible=False) as self.sheet:
            self.close = gr.Button("Close", size="sm", elem_id="saw_close")
            self.content = gr.Markdown()
        self.outputs = [self.sheet, self.content]

    @told
    async def open(self, answer_id: str) -> tuple[Any, Any]:
        """Values for `outputs`."""
        if not answer_id:
            # It was shut, so that the same answer can be asked for again.
            return gr.skip(), gr.skip()
        return gr.update(visible=True), sheet(await self.services.sights.saw(answer_id))

    def shut(self) -> tuple[Any, str, str]:
        """Values for `outputs`, and for `asked`."""
        return gr.update(visible=False), "", ""


def sheet(sight: Sight) -> str:
    """The whole prompt as HTML that a markdown widget shows: an HTML widget would evaluate it as a
    template, which the security policy forbids. Of the prompt, every active character is spelled.
    """
    answer = sight.answer
    lines = ["<h2>What the model saw</h2>"]
    if sight.doubt:
        lines.append(f'<p class="doubt">{show_verbatim(sight.doubt)}</p>')
    lines.append(
        f"<p>{sight.num_tokens:,} tokens for {show_verbatim(answer.model or 'the model')}."
        " Control tokens are marked; they are one token each.</p>"
    )
    if answer.seen.first_id:
        lines.append(f"<p>{_what_was_left_out(sight)}</p>")
    timings = timings_of(answer)
    if timings.begun_tokens:
        lines.append(
            f"<p>After it the model was given the first {timings.begun_tokens:,} tokens of its"
            " answer, which goes on from another one.</p>"
        )
    if answer.timings:
        lines.append(_sources(timings))
    prompt = "".join(map(_stretch, sight.stretches))
    lines.append(f'<pre tabindex="0">{prompt}</pre>')
    return "".join(lines)


def _what_was_left_out(sight: Sight) -> str:
    if sight.has_summary:
        return "The oldest turns were left out; a summary of them stands at the beginning."
    return "The oldest turns of the conversation were left out."


def _stretch(stretch: Stretch) -> str:
    text = show_verbatim(stretch.text)
    return f"<b>{text}</b>" if stretch.is_control else text


def _sources(timings: Timings) -> str:
    """One bar and one line for each place that the tokens came from."""
    where = "from the disk" if timings.restored_from == "disk" else "from RAM"
    parts = [
        ("cells", timings.cached_tokens, "were still in the model’s memory"),
        (
            "restored",
            timings.restored_tokens,
            f"came back {where} in {milliseconds(timings.restore_ms)}",
        ),
        ("read", timings.prefilled_tokens, "were read"),
    ]
    total = timings.prompt_tokens or 1
    known = [part for part in parts if part[1]]
    bars = "".join(
        f'<i class="{name}" style="width:{100 * number / total:.2f}%"></i>'
        for name, number, _ in known
    )
    words = "".join(
        f'<li class="{name}"><b>{number:,}</b> {what}</li>' for name, number, what in known
    )
    return f'<div class="sources">{bars}</div><ul class="sources">{words}</ul>'
