"""This machine as a sheet over the page: what it is, what runs, how fast, and what is wrong."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import gradio as gr

from app.drawing import Theme
from app.machine.check import Check
from app.machine.findings import Findings
from app.machine.predictions import Prediction
from app.machine.roofline import Roofline
from app.machine.roofline_picture import describe, draw
from app.machine.wording import cost_lines, kv_lines, moment_of, plan_lines, rates_line
from app.ui.boundary import told
from app.ui.graphics_card import GraphicsCard
from app.ui.room import Services
from app.ui.verbatim import show_verbatim
from engine.errors import InglenookError

LOOKING = '<p class="quiet">Looking at the machine. This takes some seconds…</p>'


class ThisMachinePanel:
    """Widgets and handlers. Built inside the page's Blocks. The page's script copies `report`."""

    def __init__(self, services: Services) -> None:
        self.services = services
        with gr.Column(elem_id="this_machine", visible=False) as self.sheet:
            self.close = gr.Button("Close", size="sm", elem_id="machine_close")
            gr.Markdown("## This machine", elem_id="machine_heading")
            with gr.Row(elem_id="machine_doings"):
                self.again = gr.Button("Measure again", size="sm", elem_id="machine_again")
                self.test = gr.Button("Self-test", size="sm", elem_id="machine_test")
                gr.Button("Copy report", size="sm", elem_id="machine_copy")
                self.updates = gr.Button("Check for updates", size="sm", elem_id="machine_updates")
            self.newest = gr.Markdown(elem_id="machine_newest")
            self.doing = gr.Markdown(elem_id="machine_doing")
            self.shown = gr.Markdown(elem_id="machine_findings")
            self.card = GraphicsCard(services)
            self.report = gr.Textbox(elem_id="machine_report", label="Report on this machine")
        self.content = [self.doing, self.shown, self.report]
        self.outputs = [self.sheet, *self.content]

    @told
    async def open(self) -> list[Any]:
        """Values for `outputs`: what is known, at once."""
        return [gr.update(visible=True), *self._content(LOOKING)]

    @told
    async def look_once(self) -> list[Any]:
        """Values for `content`. Measured only where nobody has looked before."""
        if self.services.machine.findings is None:
            await self.services.machine.look()
        return self._content()

    @told
    async def look_again(self) -> list[Any]:
        """Values for `content`."""
        await self.services.machine.look(is_again=True)
        return self._content()

    @told
    async def try_out(self) -> list[Any]:
        """Values for `content`."""
        await self.services.machine.try_out()
        return self._content()

    @told
    async def ask_for_updates(self) -> str:
        """What `inglenook updates` says; that nobody could be asked is an answer, too."""
        try:
            said = (await self.services.updates.look()).sentence()
        except InglenookError as error:
            said = str(error)
        return f"<p>{show_verbatim(said)}</p>"

    def shut(self) -> Any:
        return gr.update(visible=False)

    def say_measuring(self) -> str:
        return LOOKING

    def say_testing(self) -> str:
        return '<p class="quiet">Trying what the app promises, for ten seconds at most…</p>'

    def say_asking(self) -> str:
        return '<p class="quiet">Asking where versions are published…</p>'

    def say_nothing(self) -> str:
        return ""

    def _content(self, unknown: str = "") -> list[str]:
        machine = self.services.machine
        findings = machine.findings
        if findings is None:
            return [unknown, "", ""]
        return ["", sheet(findings, machine.trials), machine.report()]


def sheet(findings: Findings, trials: Sequence[Check] | None) -> str:
    """HTML for a markdown widget; every active character of what was found is spelled."""
    parts = [*_paragraphs([moment_of(findings)]), checks_table(findings.checks)]
    if trials is not None:
        parts += ["<h3>Self-test</h3>", checks_table(trials)]
    parts += [
        "<h3>What will run</h3>",
        *_paragraphs(plan_lines(findings)),
        "<h3>How fast</h3>",
        *_paragraphs([rates_line(findings)]),
        predictions_table(findings.predictions) if findings.predictions else "",
    ]
    if findings.roofline is not None:
        parts.append(pictures(findings.roofline))
    for title, lines in (
        ("What a conversation takes", kv_lines(findings.kv)),
        ("What it costs", cost_lines(findings.costs)),
    ):
        if lines:
            parts += [f"<h3>{title}</h3>", *_paragraphs(lines)]
    return "".join(parts)


def checks_table(checks: Sequence[Check]) -> str:
    rows = "".join(
        f'<tr class="{"well" if check.ok else "wrong"}"><th scope="row">'
        f"<span>{'ok' if check.ok else 'look'}</span>{show_verbatim(check.name)}</th>"
        f"<td>{show_verbatim(check.message)}{_remedy(check)}</td></tr>"
        for check in checks
    )
    return f'<table class="checks"><tbody>{rows}</tbody></table>'


def _remedy(check: Check) -> str:
    return f'<p class="remedy">{show_verbatim(check.remedy)}</p>' if check.remedy else ""


def predictions_table(predictions: Sequence[Prediction]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{each.parameters_billion:g} billion</th>'
        + (
            f"<td>{each.tokens_per_second:,.0f}</td><td>{each.read_tokens_per_second:,.0f}</td>"
            if each.fits
            else '<td colspan="2">does not fit into the free memory</td>'
        )
        + "</tr>"
        for each in predictions
    )
    return (
        '<table class="predictions"><caption>Tokens a second that a 4-bit model can reach here at'
        ' most</caption><thead><tr><th scope="col">Parameters</th><th scope="col">Writing</th>'
        f'<th scope="col">Reading</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def pictures(roofline: Roofline) -> str:
    """The picture in the colours of both themes; the page's style shows the one that fits."""
    words = describe(roofline)
    images = "".join(
        f'<img class="{theme.value}" alt="{show_verbatim(words)}" src="{_data(roofline, theme)}">'
        for theme in (Theme.LIGHT, Theme.DARK)
    )
    return f'<div class="picture" tabindex="0">{images}</div>'


def _data(roofline: Roofline, theme: Theme) -> str:
    svg = draw(roofline).as_svg(theme)
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [f"<p>{show_verbatim(line[:1].upper() + line[1:])}.</p>" for line in lines]
