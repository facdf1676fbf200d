"""The part "Graphics card" of "This machine": what was found, what an installation would take, and
its way from the first question to the last file."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import gradio as gr

from app.amounts import bytes_in_words
from app.commands.cuda import NEXT, standing_lines
from app.cuda.installation import Installation, Standing
from app.machine.plan import about_gpus
from app.ui.boundary import told, told_on_the_way
from app.ui.room import Services
from app.ui.verbatim import show_verbatim

ABOUT = (
    "For an NVIDIA card Inglenook can install PyTorch and itself once more into a Python"
    " environment beside your data. Nothing is fetched before you have seen how much it is."
)
NAMES = ("look", "install", "stop", "remove", "really", "keep")
"""Of the buttons, in the order of `outputs`."""


class GraphicsCard:
    """Widgets and handlers. Built inside the sheet "This machine"."""

    def __init__(self, services: Services) -> None:
        self.services = services
        gr.Markdown("### Graphics card", elem_id="card_heading")
        self.shown = gr.Markdown(elem_id="card_shown")
        with gr.Row(elem_id="card_doings"):
            self.look = _button("See what it takes", "card_look")
            self.install = _button("Install", "card_install")
            self.stop = _button("Stop", "card_stop")
            self.remove = _button("Remove…", "card_remove")
            self.really = _button("Yes, remove", "card_really")
            self.keep = _button("No", "card_keep")
        self.outputs = [
            self.shown,
            self.look,
            self.install,
            self.stop,
            self.remove,
            self.really,
            self.keep,
        ]

    @property
    def _cuda(self) -> Installation:
        return self.services.cuda

    @told
    async def show(self) -> list[Any]:
        """Values for `outputs`."""
        return self._content(await self._cuda.standing())

    @told_on_the_way
    async def look_at_it(self) -> AsyncGenerator[list[Any], None]:
        """Values for `outputs`, as it goes on."""
        self._cuda.begin(lambda hear: self._cuda.look(hear=hear))
        async for values in self._following():
            yield values

    @told_on_the_way
    async def install_it(self) -> AsyncGenerator[list[Any], None]:
        """Values for `outputs`, as it goes on."""
        self._cuda.begin(lambda hear: self._cuda.install(hear=hear))
        async for values in self._following():
            yield values

    @told_on_the_way
    async def follow(self) -> AsyncGenerator[list[Any], None]:
        """Values for `outputs`: of what another tab or an earlier one has begun."""
        async for values in self._following():
            yield values

    def end_it(self) -> None:
        self._cuda.stop()

    @told
    async def ask_removal(self) -> list[Any]:
        """Values for `outputs`."""
        standing = await self._cuda.standing()
        size = bytes_in_words(standing.made.num_bytes) if standing.made else "nothing"
        said = [*standing_lines(standing), f"Delete {self._cuda.environment.folder} ({size})?"]
        return [_paragraphs(said), *_buttons({"really", "keep"})]

    @told
    async def remove_it(self) -> list[Any]:
        """Values for `outputs`."""
        is_gone = await self._cuda.remove()
        after = "" if is_gone else "It is deleted at the next start."
        return self._content(await self._cuda.standing(), after)

    async def _following(self) -> AsyncGenerator[list[Any], None]:
        async for lines in self._cuda.follow():
            yield [_lines(lines or ["Beginning"]), *_buttons({"stop"})]
        yield self._content(await self._cuda.standing())

    def _content(self, standing: Standing, after: str = "") -> list[Any]:
        cuda = self._cuda
        if cuda.is_working:
            return [_lines(cuda.lines), *_buttons({"stop"})]
        about = about_gpus(standing.gpus)
        said = [f"{about[:1].upper()}{about[1:]}.", *standing_lines(standing)]
        if standing.made is None and not standing.useless:
            said[1:] = [ABOUT, *filter(None, [standing.not_yet])]
        elif standing.made is not None and not standing.obstacle and not standing.is_ours:
            said.append(NEXT)
        if after:
            said.append(after)
        if cuda.failure is not None:
            said.append(str(cuda.failure))
        if cuda.plan is not None:
            said += [f"{line[:1].upper()}{line[1:]}." for line in cuda.plan.lines()]
        shown = {"look"} if standing.made is None or standing.obstacle else set()
        if cuda.plan is not None and not cuda.plan.is_too_large:
            shown = {"look", "install"}
        if standing.made is not None:
            shown.add("remove")
        size = "" if cuda.plan is None else f"Install, {bytes_in_words(cuda.plan.fetched_bytes)}"
        return [_paragraphs(said), *_buttons(shown, not standing.useless, size)]


def _button(words: str, elem_id: str) -> gr.Button:
    return gr.Button(words, size="sm", elem_id=elem_id, visible=False)


def _buttons(shown: set[str], is_useful: bool = True, install: str = "") -> list[Any]:
    """In the order of `outputs`; one that would not help is there and cannot be pressed."""
    updates = {name: gr.update(visible=name in shown) for name in NAMES}
    for name in ("look", "install"):
        updates[name]["interactive"] = is_useful
    updates["install"]["value"] = install or "Install"
    return list(updates.values())


def _paragraphs(sentences: Sequence[str]) -> str:
    return "".join(f"<p>{show_verbatim(sentence)}</p>" for sentence in sentences)


def _lines(lines: Sequence[str]) -> str:
    rows = "".join(f"<li>{show_verbatim(line[:160])}</li>" for line in lines)
    return f'<ul class="quiet">{rows}</ul>'
