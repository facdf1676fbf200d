"""What the present controls do to the chances of the next token: a table with bars."""

from typing import Any

import gradio as gr

from app.chat.prospect import Prospect, Step
from app.ui.choices import Choices
from app.ui.room import Services
from app.ui.sampling import LABELS
from app.ui.token_text import token_html
from app.ui.verbatim import show_verbatim
from engine.errors import InglenookError

PAUSE_S = 0.1
STEPS = {
    "model": "Model",
    "logit_bias": "Logit bias",
    "banned_phrases": "Banned",
    "temperature": "Temp.",
    "min_tokens": "No end yet",
    "penalties": "Penalties",
    "no_repeat_ngram": "No repeat",
    "dry": "DRY",
    "greedy": "Likeliest",
    "mirostat": "Mirostat",
    "adaptive_p": "Adaptive-p",
    "xtc": "XTC",
}
LEAST = 0.0005


class ProspectPanel:
    """Widgets and handlers. Built inside the page's Blocks. `is_open` belongs to the tab."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.is_open = gr.State(False)
        with gr.Accordion("What these choices do", open=False, elem_id="prospect") as self.fold:
            self.chart = gr.Markdown(elem_id="prospect_chart")

    async def look(self, is_open: bool, conversation_id: str | None, *values: Any) -> Any:
        """The chart for these choices; nothing is computed while nobody sees it."""
        if not is_open:
            return gr.skip()
        try:
            choices = Choices.of_widgets(values)
            prospect = await self.services.prospects.look(
                conversation_id, choices.params, choices.system_prompt, choices.examples
            )
        except InglenookError as error:
            return f'<p class="quiet">{show_verbatim(str(error))}</p>'
        return chart(prospect)


def chart(prospect: Prospect) -> str:
    """HTML for a markdown widget; every active character of a token is spelled."""
    most = max(max(each.probabilities) for each in prospect.tokens)
    head = "".join(f'<th scope="col">{_name(step)}</th>' for step in prospect.steps)
    rows = "".join(
        f'<tr><th scope="row">{token_html(each.text, is_control=each.is_control)}</th>'
        f"{''.join(_cell(p, most) for p in each.probabilities)}</tr>"
        for each in prospect.tokens
    )
    others = "".join(_cell(step.others, 1.0) for step in prospect.steps)
    left = "".join(f"<td><span>{step.num_tokens:,}</span></td>" for step in prospect.steps)
    return (
        f'<p class="quiet">{_about(prospect)}</p>'
        '<div class="scrolled" tabindex="0"><table class="prospect">'
        f'<thead><tr><th scope="col">Token</th>{head}</tr></thead><tbody>{rows}</tbody>'
        f'<tfoot><tr><th scope="row">all others</th>{others}</tr>'
        f'<tr><th scope="row">left</th>{left}</tr></tfoot></table></div>'
    )


def _about(prospect: Prospect) -> str:
    where = (
        "Nothing was said yet, so this is for a sample text."
        if prospect.is_sample
        else "This is for the next token after the last message of yours."
    )
    form = " The form of the answer is not counted." if prospect.has_form else ""
    return f"{where} Chances in percent, after each step from left to right.{form}"


def _name(step: Step) -> str:
    return show_verbatim(STEPS.get(step.name) or LABELS[step.name])


def _cell(probability: float, most: float) -> str:
    if probability == 0.0:
        return '<td class="out"><span>–</span></td>'
    width = 100 * probability / most
    return f'<td><i style="width:{width:.1f}%"></i><span>{percent(probability)}</span></td>'


def percent(probability: float) -> str:
    """With as many places as say something."""
    if probability < LEAST:
        return "&lt;0.1"
    value = 100 * probability
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}"
