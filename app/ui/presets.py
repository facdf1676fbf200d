"""The presets in the settings: choosing one, keeping the present choices as one, and the rest."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from app.chat.answer_form import AnswerForm
from app.presets.preset import Preset, read_preset_file
from app.ui.boundary import told
from app.ui.choices import Choices
from app.ui.room import Services
from app.ui.verbatim import show_verbatim
from engine.errors import HomeError, UsageError
from engine.sampling_params import SamplingParams, changes_between

PROMPT, FORM, EXAMPLES = "System prompt", "Form of the answers", "Examples"
PARTS = PROMPT, FORM, EXAMPLES
SAVE, REPLACE, RENAME, DELETE = "Save", "Replace", "Rename", "Remove"


class PresetPicker:
    """Widgets and handlers. Built inside the page's Blocks.

    `task` is what the question below the list is for: one of the verbs, or empty.
    """

    def __init__(self, services: Services) -> None:
        self.services = services
        self.list = gr.Dropdown(
            self._names(),
            value=None,
            elem_id="preset",
            label="Preset",
            info="Empty: choices of your own",
        )
        with gr.Row(elem_id="preset_buttons"):
            self.save = _button("Save…", "preset_save")
            self.rename = _button("Rename…", "preset_rename")
            self.delete = _button("Remove…", "preset_delete")
            # These two are the work of the page's script: only it can read and write files.
            self.export = _button("Export", "preset_export")
            self.fetch = _button("Import…", "preset_import")
        self.file = gr.Textbox(elem_id="preset_file", label="Content of the file")
        self.task = gr.State("")
        with gr.Column(visible=False, elem_id="preset_task") as self.sheet:
            self.question = gr.Markdown()
            self.name = gr.Textbox(label="Name", elem_id="preset_name", max_lines=1)
            self.parts = gr.CheckboxGroup(
                list(PARTS), label="Also keep", elem_id="preset_parts", value=[]
            )
            with gr.Row():
                self.do = gr.Button(SAVE, variant="primary", size="sm", elem_id="preset_do")
                self.cancel = _button("Cancel", "preset_cancel")
        self.said = gr.Markdown(visible=False, elem_id="preset_said", elem_classes="quiet")
        self.outputs = [self.list, self.rename, self.delete, self.export]
        self.asking = [self.task, self.sheet, self.question, self.name, self.parts, self.do]

    def show(self, name: str | None) -> list[Any]:
        """Values for `outputs`: the list as it is now, with this one chosen."""
        names = self._names()
        chosen = name if name in names else None
        is_saved = chosen is not None and chosen not in self._given()
        return [
            gr.update(choices=names, value=chosen),
            gr.update(interactive=is_saved),
            gr.update(interactive=is_saved),
            gr.update(interactive=chosen is not None),
        ]

    def named(self, choices: Choices, form: AnswerForm | None) -> str | None:
        """The preset that these choices make up, if any."""
        try:
            presets = self.services.presets.all()
        except HomeError:
            presets = self.services.presets.given()
        # A saved one may say more than a given one with the same controls.
        found = [each for each in presets if _is_like(each, choices, form)]
        return found[-1].name if found else None

    async def ask_save(self, *now: Any) -> list[Any]:
        """Values for `asking`. `now` are the choices and the form of the next answers."""
        *values, form = now
        prompt, _, examples = values
        used = {PROMPT: str(prompt).strip(), FORM: form, EXAMPLES: examples not in ("", "[]")}
        parts = [part for part in PARTS if used[part] and part != PROMPT]
        return self._ask(SAVE, "Keep the present choices under a name.", "", parts)

    async def ask_rename(self, chosen: str) -> list[Any]:
        return self._ask(RENAME, f"Another name for {show_verbatim(chosen)}", chosen)

    async def ask_delete(self, chosen: str) -> list[Any]:
        question = f"Remove {show_verbatim(chosen)}? It cannot be brought back."
        return self._ask(DELETE, question, chosen)

    def leave(self) -> list[Any]:
        """Values for `task` and `sheet`: nothing is asked any more."""
        return ["", gr.update(visible=False)]

    @told
    async def answer(self, task: str, chosen: str, name: str, parts: list[str], *now: Any) -> Any:
        """Do what was asked about. Gives values for `outputs`, `asking` and `said`."""
        presets = self.services.presets
        match task:
            case "Save" | "Replace":
                preset = _preset_of(name, parts, now)
                if task == SAVE and _has(presets.saved(), name):
                    question = f"There is a preset {show_verbatim(name)} already. Replace it?"
                    asked = self._ask(REPLACE, question, name, parts)
                    return [*(gr.skip() for _ in self.outputs), *asked, gr.skip()]
                preset = presets.save(preset, replaces=task == REPLACE)
                return self._done(preset.name, f"Saved as {preset.name}.")
            case "Rename":
                renamed = presets.rename(chosen, name)
                return self._done(renamed.name, f"It is called {renamed.name} now.")
            case "Remove":
                presets.delete(chosen)
                return self._done(None, f"{chosen} is removed.")
        raise UsageError("Nothing was asked: choose what to do with a preset.")

    @told
    async def take_file(self, text: str) -> Any:
        """Store a preset that came in a file. Gives values for `outputs`, `asking` and `said`."""
        preset = read_preset_file(text)
        if preset.form is not None:
            await self.check_form(preset)
        added = self.services.presets.add(preset)
        done = self._done(None, f"{added.name} is among the presets now: choose it to use it.")
        return done

    async def check_form(self, preset: Preset) -> None:
        """Raises UsageError when the model cannot be kept to the form of a preset."""
        assert preset.form is not None
        verdict = await self.services.forms.judge(preset.form)
        if verdict.fault:
            raise UsageError(
                f"The form of the preset {preset.name} cannot be used: {verdict.fault}"
            )

    def _done(self, name: str | None, sentence: str) -> list[Any]:
        asked = [*self.leave(), *(gr.skip() for _ in self.asking[2:])]
        said = gr.update(visible=True, value=show_verbatim(sentence))
        return [*self.show(name), *asked, said]

    def _ask(self, task: str, question: str, name: str, parts: Sequence[str] = ()) -> list[Any]:
        is_saving = task in (SAVE, REPLACE)
        return [
            task,
            gr.update(visible=True),
            question,
            gr.update(visible=task != DELETE, value=name),
            gr.update(visible=is_saving, value=list(parts)),
            task,
        ]

    def _given(self) -> list[str]:
        return [each.name for each in self.services.presets.given()]

    def _names(self) -> list[str]:
        try:
            return [each.name for each in self.services.presets.all()]
        except HomeError:
            # It is said where one is saved; the others can be used meanwhile.
            return self._given()


def _preset_of(name: str, parts: Sequence[str], now: Sequence[Any]) -> Preset:
    """The present choices, those of the named parts."""
    *values, form = now
    choices = Choices.of_widgets(values)
    return Preset(
        name=name,
        sampling=changes_between(SamplingParams(), choices.params),
        system_prompt=choices.system_prompt if PROMPT in parts else None,
        form=form if FORM in parts else None,
        examples=choices.examples if EXAMPLES in parts else None,
    )


def chosen_with(preset: Preset, choices: Choices) -> Choices:
    """These choices under a preset."""
    taken = Choices(choices.system_prompt, preset.params_over(choices.params), choices.examples)
    if preset.system_prompt is not None:
        taken = replace(taken, system_prompt=preset.system_prompt)
    if preset.examples is not None:
        taken = replace(taken, examples=preset.examples)
    return taken


def _is_like(preset: Preset, choices: Choices, form: AnswerForm | None) -> bool:
    return chosen_with(preset, choices) == choices and preset.form in (None, form)


def _has(presets: Sequence[Preset], name: str) -> bool:
    wanted = " ".join(name.split()).casefold()
    return any(each.name.casefold() == wanted for each in presets)


def _button(label: str, elem_id: str) -> Any:
    return gr.Button(label, size="sm", elem_id=elem_id)
