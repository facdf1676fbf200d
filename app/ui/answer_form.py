"""The sheet in which the form of the next answers is chosen or written.

What is wrong with a form stands below it while it is written, and a form that the model cannot be
kept to is not taken.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import gradio as gr

from app.chat.answer_form import AnswerForm
from app.chat.forms import ReadyForms, Verdict
from app.chat.wishes import LONGEST_SHOWN, is_shown
from app.ui.answer_as import AnswerAs
from app.ui.boundary import told
from app.ui.form_draft import FormDraft, Way, draft_of
from app.ui.room import Services
from app.ui.verbatim import show_verbatim
from engine.errors import GrammarError
from grammars.catalog import ReadyForm

TYPING_PAUSE_S = 0.4
PLACE = re.compile(r"line (\d+), column (\d+)")
AT = "#at-"
"""With a line and a column it makes the address that the page's script knows."""

EXAMPLE_SCHEMA = '{"type": "object", "properties": {"name": {"type": "string"}}}'
EXAMPLE_GRAMMAR = 'root ::= "yes" | "no, because " [a-z ]+'


@dataclass(slots=True)
class Judgements:
    """How many judgements one tab has asked for. Only the newest may be shown: an older one that
    comes late would take the place of what was said since."""

    asked: int = 0

    def ask(self) -> int:
        self.asked += 1
        return self.asked


class FormDialog:
    """Widgets and handlers. Built inside the page's Blocks.

    `drafted` are the widgets of a `FormDraft`, in its order.
    """

    def __init__(self, services: Services, answer_as: AnswerAs) -> None:
        self.services = services
        self.answer_as = answer_as
        with gr.Column(elem_id="form_dialog", visible=False) as self.sheet:
            gr.Markdown("## How the next answers come", elem_id="form_heading")
            self.way = gr.Radio(
                [way.value for way in Way],
                value=Way.TEXT.value,
                elem_id="form_way",
                label="Kind of form",
            )
            parts = {
                Way.TEXT: self._text(),
                Way.FORM: self._fields(),
                Way.READY: self._ready(),
                Way.SCHEMA: self._schema(),
                Way.CHOICES: self._choices(),
                Way.PATTERN: self._pattern(),
                Way.GRAMMAR: self._grammar(),
            }
            self.verdict_words = gr.Markdown(elem_id="form_verdict")
            self.approximate = gr.Checkbox(
                False,
                visible=False,
                elem_id="form_approximate",
                label="Follow it approximately",
                info=(
                    "What cannot be enforced is checked afterwards. An answer that does not satisfy"
                    " it is asked for again up to twice, and marked if none does."
                ),
            )
            with gr.Row(elem_id="form_buttons"):
                self.use = gr.Button("Use", variant="primary", size="sm", elem_id="form_use")
                self.cancel = gr.Button("Cancel", size="sm", elem_id="form_cancel")
        self.parts = [parts[way] for way in Way]
        self.written: list[Any] = [
            self.fields,
            self.schema,
            self.choices,
            self.pattern,
            self.grammar,
        ]
        self.chosen: list[Any] = [self.is_list, self.ready, self.approximate]
        self.drafted = [
            self.way,
            self.fields,
            self.is_list,
            self.ready,
            self.schema,
            self.choices,
            self.pattern,
            self.grammar,
            self.approximate,
        ]
        self.verdict = [self.verdict_words, self.approximate]
        self.judged = [gr.State(Judgements()), *self.drafted]
        self.outputs = [self.sheet, *self.drafted, self.example, self.own_faults, *self.parts]

    def _text(self) -> Any:
        with gr.Column(elem_classes="form_part") as part:
            gr.Markdown("The model answers as it likes.", elem_classes="quiet")
        return part

    def _fields(self) -> Any:
        with gr.Column(elem_classes="form_part", visible=False) as part:
            gr.Markdown(
                "The answer has these fields, in this order. Their names and what they mean are"
                " told to the model.",
                elem_classes="quiet",
            )
            # The page's script shows them as rows, and writes here what was made of them.
            self.fields = gr.Textbox("[]", elem_id="form_fields", label="Fields")
            self.is_list = gr.Checkbox(
                False, elem_id="form_is_list", label="Several of these, as a table"
            )
        return part

    def _ready(self) -> Any:
        with gr.Column(elem_classes="form_part", visible=False) as part:
            self.ready = gr.Radio([], elem_id="form_ready", label="Ready-made forms")
            self.example = gr.Markdown(elem_id="form_example")
            self.own_faults = gr.Markdown(visible=False, elem_classes="quiet")
        return part

    def _schema(self) -> Any:
        with gr.Column(elem_classes="form_part", visible=False) as part:
            self.schema = _code("form_schema", "JSON Schema", EXAMPLE_SCHEMA)
        return part

    def _choices(self) -> Any:
        with gr.Column(elem_classes="form_part", visible=False) as part:
            self.choices = gr.Textbox(
                elem_id="form_choices",
                label="The answer is one of these",
                info="One in each line",
                lines=5,
                max_lines=14,
            )
        return part

    def _pattern(self) -> Any:
        with gr.Column(elem_classes="form_part", visible=False) as part:
            self.pattern = gr.Textbox(
                elem_id="form_pattern",
                label="Regular expression",
                info="The whole answer matches it",
                placeholder="[0-9]{4}-[0-9]{2}",
                max_lines=6,
            )
        return part

    def _grammar(self) -> Any:
        with gr.Column(elem_classes="form_part", visible=False) as part:
            self.grammar = _code(
                "form_grammar", "Grammar, in GBNF (with ::=) or Lark", EXAMPLE_GRAMMAR
            )
        return part

    @told
    async def open(self, form: AnswerForm | None) -> list[Any]:
        """Values for `outputs`: the sheet with the form that is chosen now."""
        ready = await self.services.forms.ready()
        draft = draft_of(form, ready.forms)
        values = list(astuple(draft))
        values[self.drafted.index(self.ready)] = gr.update(
            choices=[(_label(each), name) for name, each in ready.forms.items()], value=draft.ready
        )
        return [
            gr.update(visible=True),
            *values,
            _example(ready.forms.get(draft.ready or "")),
            _faults(ready),
            *_shown(draft.way),
        ]

    def shut(self) -> Any:
        return gr.update(visible=False)

    @told
    async def switch(self, judgements: Judgements, *drafted: Any) -> list[Any]:
        """Values for `parts`, and for `verdict`, which is another one now."""
        verdict = await self._judge_if_newest(judgements, judgements.ask(), drafted)
        return [*_shown(_draft(drafted).way), *verdict]

    @told
    async def preview(self, name: str) -> str:
        return _example((await self.services.forms.ready()).forms.get(name))

    @told
    async def judge(self, judgements: Judgements, *drafted: Any) -> list[Any]:
        """Values for `verdict`, at once."""
        return await self._judge_if_newest(judgements, judgements.ask(), drafted)

    @told
    async def judge_typing(self, judgements: Judgements, *drafted: Any) -> list[Any]:
        number = judgements.ask()
        await asyncio.sleep(TYPING_PAUSE_S)
        return await self._judge_if_newest(judgements, number, drafted)

    @told
    async def take(
        self, conversation_id: str | None, judgements: Judgements, *drafted: Any
    ) -> list[Any]:
        """Store the form, or say what is wrong with it. Gives values for the sheet, `verdict` and
        the button at the message box."""
        judgements.ask()
        draft = _draft(drafted)
        form, verdict = await self._judged(draft)
        if verdict.fault:
            told_fault = _told(form, verdict, draft.may_be_broken)
            return [gr.skip(), *told_fault, *[gr.skip() for _ in self.answer_as.outputs]]
        if conversation_id is not None:
            await self.services.conversations.set_answer_form(conversation_id, form)
        return [self.shut(), gr.skip(), gr.skip(), *self.answer_as.show(form)]

    async def _judge_if_newest(
        self, judgements: Judgements, number: int, drafted: Sequence[Any]
    ) -> list[Any]:
        draft = _draft(drafted)
        told_now = ["", gr.update(visible=False)]
        if not draft.is_empty:
            form, verdict = await self._judged(draft)
            told_now = _told(form, verdict, draft.may_be_broken)
        if judgements.asked != number:
            return [gr.skip() for _ in self.verdict]
        return told_now

    async def _judged(self, draft: FormDraft) -> tuple[AnswerForm | None, Verdict]:
        forms = self.services.forms
        try:
            form = draft.form((await forms.ready()).forms)
        except GrammarError as error:
            return None, Verdict(str(error))
        return form, Verdict() if form is None else await forms.judge(form)


def _draft(values: Sequence[Any]) -> FormDraft:
    """What the widgets hold; an empty text box may hold nothing at all."""
    names = [field.name for field in fields(FormDraft)]
    given = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    return FormDraft(**given)


def _code(elem_id: str, label: str, example: str) -> Any:
    return gr.Textbox(
        elem_id=elem_id,
        label=label,
        placeholder=example,
        lines=9,
        max_lines=16,
        elem_classes="code",
    )


def _shown(way: str) -> list[Any]:
    return [gr.update(visible=each == way) for each in Way]


def _label(form: ReadyForm) -> str:
    return f"{form.title}\n{form.description}"


def _example(form: ReadyForm | None) -> str:
    if form is None:
        return ""
    words = f"<p>{show_verbatim(form.description)}</p>"
    if not form.accepted:
        return words
    return f"{words}<p>For example:</p><pre>{show_verbatim(form.accepted[-1])}</pre>"


def _faults(ready: ReadyForms) -> Any:
    """Files of the user's own that cannot be offered."""
    words = "".join(f"<p>{show_verbatim(each)}</p>" for each in ready.faults)
    return gr.update(value=words, visible=bool(words))


def _told(form: AnswerForm | None, verdict: Verdict, is_approximate: bool) -> list[Any]:
    """A verdict in words, and whether it may be approximate."""
    may_be = verdict.is_approximable or bool(verdict.unenforced) or is_approximate
    if verdict.fault:
        words = show_verbatim(verdict.fault)
        place = PLACE.search(verdict.fault)
        if place is not None:
            link = f'<a href="{AT}{place[1]}-{place[2]}">{show_verbatim(place[0])}</a>'
            words = words.replace(show_verbatim(place[0]), link, 1)
        return [f'<p class="fault">{words}</p>', gr.update(visible=may_be)]
    fine = "The model is kept to this form."
    if verdict.unenforced:
        fine = f"This is checked afterwards: {verdict.unenforced}."
    if form is not None and not is_shown(form):
        fine += (
            f" It is too long for the model to read beside the conversation ({LONGEST_SHOWN:,}"
            " characters), but its answers are kept to it all the same."
        )
    return [f'<p class="fine">{show_verbatim(fine)}</p>', gr.update(visible=may_be)]
