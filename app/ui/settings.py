"""The panel of choices: the system prompt and how the next token is picked.

A conversation stores only what differs from the settings of the app, so that a better default
reaches every conversation that never asked for something else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from app.chat.message import Conversation, Overflow
from app.ui.boundary import told
from app.ui.context import CHOICES
from app.ui.room import Services
from engine.sampling_params import PRESETS, RANGES, SamplingParams, with_changes


@dataclass(frozen=True, slots=True)
class Control:
    """One slider: the field of `SamplingParams` it moves, and how it is explained.

    It reaches as far as the engine allows, unless `reach` ends it where it is still of use.
    """

    name: str
    label: str
    info: str
    step: float
    reach: tuple[float, float] | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        return self.reach or BOUNDS[self.name]


BOUNDS = {name: (low, high) for name, low, high in RANGES}
MAIN = (
    Control("temperature", "Temperature", "0 is always the likeliest word", 0.05),
    Control("max_tokens", "Longest answer", "in tokens, about 3/4 of a word each", 1, (1, 8192)),
)
MORE = (
    Control("top_k", "Top-k", "keep the k likeliest tokens; 0 is off", 1, (0, 200)),
    Control("top_p", "Top-p", "keep the likeliest that add up to this; 1 is off", 0.01),
    Control("min_p", "Min-p", "drop what is rarer than this share of the best", 0.01),
    Control("repetition_penalty", "Repetition penalty", "1 is off", 0.01, (0.8, 2.0)),
    Control("presence_penalty", "Presence penalty", "0 is off", 0.1),
    Control("frequency_penalty", "Frequency penalty", "0 is off", 0.1),
)
NAMES = (*(control.name for control in (*MAIN, *MORE)), "seed")
WHOLE = {"max_tokens", "top_k", "seed"}


class SettingsPanel:
    """Widgets and handlers of the panel. Built inside the page's Blocks."""

    def __init__(self, services: Services) -> None:
        self.services = services
        gr.Markdown("## Settings", elem_id="settings_heading")
        self.system_prompt = gr.Textbox(
            elem_id="system_prompt",
            label="System prompt",
            info="How the model should behave, in your words",
            value=services.settings.default_system_prompt,
            lines=4,
            max_lines=12,
        )
        self.preset = gr.Radio(
            [name.capitalize() for name in PRESETS],
            elem_id="preset",
            label="Style",
            value=preset_of(services.settings.sampling),
        )
        defaults = services.settings.sampling
        sliders = [_slider(control, defaults) for control in MAIN]
        with gr.Accordion("More controls", open=False):
            sliders += [_slider(control, defaults) for control in MORE]
            self.seed = gr.Number(
                elem_id="seed",
                label="Seed",
                info="the same seed gives the same answer; empty is by chance",
                value=defaults.seed,
                precision=0,
                minimum=0,
            )
        gr.Markdown(
            "These count for this conversation, from its next answer on.", elem_classes="quiet"
        )
        self.overflow = gr.Radio(
            list(CHOICES),
            elem_id="when_full",
            label="When the context is full",
            value=Overflow.ASK.value,
            visible=False,
        )
        self.keep = gr.Button(
            "Use them for new conversations, too", size="sm", elem_id="keep_choices"
        )
        self.kept = gr.Markdown(
            "New conversations start with these choices.", visible=False, elem_classes="quiet"
        )
        self.max_tokens = sliders[NAMES.index("max_tokens")]
        self.sampling = [*sliders, self.seed]
        self.choices = [self.system_prompt, *self.sampling]
        self.outputs = [self.kept, self.preset, *self.choices, self.overflow]

    def changes(self, choices: Sequence[Any]) -> tuple[str, dict[str, Any]]:
        """System prompt, and the controls that differ from the defaults."""
        return str(choices[0]), _differences(choices[1:], self.services.settings.sampling)

    @told
    async def save(self, conversation_id: str | None, *choices: Any) -> None:
        """Store the choices of a conversation; a new one takes them with its first message."""
        prompt, changed = self.changes(choices)
        if conversation_id is not None:
            await self.services.conversations.set_system_prompt(conversation_id, prompt)
            await self.services.conversations.set_sampling(conversation_id, changed)

    async def name_preset(self, *choices: Any) -> str | None:
        """The preset that the moved controls make up, if any."""
        _, changed = self.changes(choices)
        return preset_of(with_changes(self.services.settings.sampling, changed))

    @told
    async def keep_choices(self, *choices: Any) -> Any:
        """Make these the choices that a new conversation starts with."""
        settings = self.services.settings
        unseen = {
            name: value for name, value in settings.default_sampling.items() if name not in NAMES
        }
        changed = _differences(choices[1:], SamplingParams())
        self.services.save_settings(
            replace(
                settings,
                default_system_prompt=str(choices[0]),
                default_sampling={**unseen, **changed},
            )
        )
        return gr.update(visible=True)

    async def take_preset(self, preset: str, max_tokens: float, seed: float | None) -> list[Any]:
        """The values of every control under this preset; length and seed stay."""
        params = PRESETS[preset.lower()]
        kept = {"max_tokens": max_tokens, "seed": seed}
        return [kept.get(name, getattr(params, name)) for name in NAMES]

    def show(self, conversation: Conversation | None) -> list[Any]:
        """Values for `outputs`: those of a conversation, or what a new one starts with."""
        settings = self.services.settings
        params, prompt = settings.sampling, settings.default_system_prompt
        if conversation is not None:
            params = with_changes(params, conversation.sampling)
            prompt = conversation.system_prompt
        values = [getattr(params, name) for name in NAMES]
        overflow = self.show_overflow(conversation)
        return [gr.update(visible=False), preset_of(params), prompt, *values, overflow]

    def show_overflow(self, conversation: Conversation | None) -> Any:
        """A new conversation has room; it is asked about when it has not."""
        if conversation is None:
            return gr.update(visible=False)
        return gr.update(visible=True, value=conversation.overflow.value)

    @told
    async def save_overflow(self, conversation_id: str | None, choice: str) -> None:
        if conversation_id is not None:
            await self.services.conversations.set_overflow(conversation_id, Overflow(choice))


def preset_of(params: SamplingParams) -> str | None:
    """The preset whose choices these are, whatever their length and seed."""
    for name, preset in PRESETS.items():
        same = {"max_tokens": params.max_tokens, "seed": params.seed}
        if with_changes(preset, same) == params:
            return name.capitalize()
    return None


def _differences(values: Sequence[Any], params: SamplingParams) -> dict[str, Any]:
    """What of these values of `NAMES` is not as in `params`; InvalidParams if one is impossible."""
    wanted = {
        name: int(value) if name in WHOLE and value is not None else value
        for name, value in zip(NAMES, values, strict=True)
    }
    changed = {name: value for name, value in wanted.items() if value != getattr(params, name)}
    with_changes(params, changed)
    return changed


def _slider(control: Control, defaults: SamplingParams) -> Any:
    slider: Any = gr.Slider(
        *control.bounds,
        getattr(defaults, control.name),
        step=control.step,
        label=control.label,
        info=control.info,
        elem_id=control.name,
        buttons=[],
    )
    # Gradio would refuse every event of the page over a stored or typed value beyond the slider;
    # what is possible at all is for SamplingParams to say.
    slider.preprocess = lambda value: value
    return slider
