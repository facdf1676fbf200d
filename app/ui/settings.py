"""The panel of choices: presets, the system prompt, how the next token is picked, and examples.

A conversation stores only what differs from the settings of the app, so that a better default
reaches every conversation that never asked for something else.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from app.chat.message import Conversation, Overflow
from app.ui.boundary import told
from app.ui.choices import Choices, read_examples
from app.ui.context import CHOICES
from app.ui.presets import PresetPicker, chosen_with
from app.ui.prospect import ProspectPanel
from app.ui.room import Services
from app.ui.sampling import ALL, Fault, faults_of, read_changes
from app.ui.verbatim import show_verbatim
from engine.errors import UsageError
from engine.sampling_params import SamplingParams, changes_between, with_changes


class SettingsPanel:
    """Widgets and handlers of the panel. Built inside the page's Blocks.

    `choices` are the widgets of `Choices`. The page's script shows `sampling` and `examples` as
    fields.
    """

    def __init__(self, services: Services) -> None:
        self.services = services
        gr.Markdown("## Settings", elem_id="settings_heading")
        self.presets = PresetPicker(services)
        prompt, sampling, examples = _usual(services).for_widgets()
        self.system_prompt = gr.Textbox(
            elem_id="system_prompt",
            label="System prompt",
            info="How the model should behave, in your words",
            value=prompt,
            lines=4,
            max_lines=12,
        )
        self.sampling = gr.Textbox(sampling, elem_id="sampling_values", label="Sampling controls")
        sampling_faults = gr.Markdown(elem_id="sampling_faults")
        self.prospect = ProspectPanel(services)
        with gr.Accordion("Examples", open=False, elem_id="examples"):
            gr.Markdown(
                "Shown to the model before everything that is said, as if it had answered so.",
                elem_classes="quiet",
            )
            self.examples = gr.Textbox(examples, elem_id="example_values", label="Examples")
            example_faults = gr.Markdown(elem_id="example_faults")
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
        self.choices = [self.system_prompt, self.sampling, self.examples]
        self.faults = [sampling_faults, example_faults]
        self.outputs = [
            self.kept,
            *self.presets.outputs,
            *self.choices,
            *self.faults,
            self.overflow,
        ]

    def changes(self, values: Sequence[Any]) -> tuple[Choices, dict[str, Any]]:
        """The choices, and the controls that differ from the app's. Raises UsageError."""
        choices = Choices.of_widgets(values)
        return choices, choices.sampling_beside(self.services.settings.sampling)

    @told
    async def save(self, conversation_id: str | None, *values: Any) -> list[Any]:
        """Store the choices of a conversation; a new one takes them with its first message.

        What is not possible is not stored: it is said beside its field. Gives values for `faults`.
        """
        prompt, sampling, examples = values
        changes = read_changes(sampling)
        faults = faults_of(changes)
        example_faults: list[Fault] = []
        try:
            read_examples(examples)
        except UsageError as error:
            example_faults.append(Fault(ALL, str(error)))
        if conversation_id is not None:
            now = self._shown(await self.services.conversations.get(conversation_id))
            await self._store(
                conversation_id,
                now,
                Choices(
                    str(prompt),
                    now.params if faults else with_changes(SamplingParams(), changes),
                    now.examples if example_faults else read_examples(examples),
                ),
            )
        return [_listed(faults), _listed(example_faults)]

    async def _store(self, conversation_id: str, now: Choices, wanted: Choices) -> None:
        """Only what is another one: the widgets change, too, when a conversation is opened."""
        conversations = self.services.conversations
        if wanted.system_prompt != now.system_prompt:
            await conversations.set_system_prompt(conversation_id, wanted.system_prompt)
        if wanted.params != now.params:
            changed = wanted.sampling_beside(self.services.settings.sampling)
            await conversations.set_sampling(conversation_id, changed)
        if wanted.examples != now.examples:
            await conversations.set_examples(conversation_id, wanted.examples)

    def _shown(self, conversation: Conversation | None) -> Choices:
        """Those of a conversation, or what a new one starts with."""
        usual = _usual(self.services)
        if conversation is None:
            return usual
        params = with_changes(usual.params, conversation.sampling)
        return Choices(conversation.system_prompt, params, conversation.examples)

    async def name_preset(self, *now: Any) -> list[Any]:
        """Values for the preset's widgets: the one that the choices and the form make up."""
        *values, form = now
        try:
            return self.presets.show(self.presets.named(Choices.of_widgets(values), form))
        except UsageError:
            return self.presets.show(None)

    @told
    async def take_preset(self, conversation_id: str | None, name: str, *now: Any) -> list[Any]:
        """The choices under a preset, and its form, which is stored. Gives values for `choices`
        and the form; the form as it is where the preset has none."""
        *values, form = now
        if not name:
            return [*values, form]
        preset = self.services.presets.get(name)
        if preset.form is not None:
            await self.presets.check_form(preset)
            form = preset.form
            if conversation_id is not None:
                await self.services.conversations.set_answer_form(conversation_id, form)
        try:
            before = Choices.of_widgets(values)
        except UsageError:
            # What was not possible goes with it.
            before = replace(_usual(self.services), system_prompt=str(values[0]))
        return [*chosen_with(preset, before).for_widgets(), form]

    @told
    async def keep_choices(self, *values: Any) -> Any:
        """Make these the choices that a new conversation starts with."""
        choices = Choices.of_widgets(values)
        self.services.save_settings(
            replace(
                self.services.settings,
                default_system_prompt=choices.system_prompt,
                default_sampling=changes_between(SamplingParams(), choices.params),
                default_examples=choices.examples,
            )
        )
        return gr.update(visible=True)

    def show(self, conversation: Conversation | None) -> list[Any]:
        """Values for `outputs`: those of a conversation, or what a new one starts with."""
        choices = self._shown(conversation)
        form = None if conversation is None else conversation.answer_form
        return [
            gr.update(visible=False),
            *self.presets.show(self.presets.named(choices, form)),
            *choices.for_widgets(),
            "",
            "",
            self.show_overflow(conversation),
        ]

    def show_overflow(self, conversation: Conversation | None) -> Any:
        """A new conversation has room; it is asked about when it has not."""
        if conversation is None:
            return gr.update(visible=False)
        return gr.update(visible=True, value=conversation.overflow.value)

    @told
    async def save_overflow(self, conversation_id: str | None, choice: str) -> None:
        if conversation_id is not None:
            await self.services.conversations.set_overflow(conversation_id, Overflow(choice))


def _usual(services: Services) -> Choices:
    """What a new conversation starts with."""
    settings = services.settings
    return Choices(settings.default_system_prompt, settings.sampling, settings.default_examples)


def _listed(faults: Sequence[Fault]) -> str:
    """The page's script brings each to its field."""
    return "".join(
        f'<p class="fault of-{each.name}">{show_verbatim(each.sentence)}</p>' for each in faults
    )
