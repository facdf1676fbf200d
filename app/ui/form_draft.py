"""What stands in the sheet for the form of answers, and the form that it makes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from app.chat.answer_form import AnswerForm, choices_in
from app.chat.fields import Fields, fields_as_json, fields_from_json, fields_of
from engine.errors import GrammarError
from engine.guided.grammar import GrammarKind, grammar_kind
from grammars.catalog import ReadyForm

BY_FIELDS = "Form"
"""The title of a form that was built field by field."""


class Way(StrEnum):
    """How a form is given; the words are those of the page."""

    TEXT = "Text"
    FORM = "Form"
    READY = "Ready-made"
    SCHEMA = "JSON Schema"
    CHOICES = "One of"
    PATTERN = "Pattern"
    GRAMMAR = "Grammar"


@dataclass(frozen=True, slots=True)
class FormDraft:
    """`way` says which of the others counts; they keep what was written there.

    `fields` is JSON as the page's script writes it, `choices` has one in a line.
    """

    way: str = Way.TEXT.value
    fields: str = "[]"
    is_list: bool = False
    ready: str | None = None
    schema: str = ""
    choices: str = ""
    pattern: str = ""
    grammar: str = ""
    is_approximate: bool = False

    @property
    def is_empty(self) -> bool:
        """Nothing was written yet that could be right or wrong."""
        written = {
            Way.FORM: self.fields.strip(" []"),
            Way.READY: self.ready,
            Way.SCHEMA: self.schema.strip(),
            Way.CHOICES: self.choices.strip(),
            Way.PATTERN: self.pattern,
            Way.GRAMMAR: self.grammar.strip(),
        }
        return not written.get(Way(self.way))

    @property
    def may_be_broken(self) -> bool:
        """Only of a schema can a part be left to a check afterwards."""
        return self.is_approximate and self.way == Way.SCHEMA

    def form(self, ready: Mapping[str, ReadyForm]) -> AnswerForm | None:
        """None: the answers are text. Raises GrammarError for what is no form."""
        match Way(self.way):
            case Way.TEXT:
                return None
            case Way.FORM:
                source = Fields(fields_from_json(self.fields), self.is_list).source()
                return replace(AnswerForm.of_own(GrammarKind.JSON_SCHEMA, source), title=BY_FIELDS)
            case Way.READY:
                chosen = ready.get(self.ready or "")
                if chosen is None:
                    raise GrammarError("No form is chosen yet: choose one of the list.")
                return AnswerForm.of_ready(chosen)
            case Way.SCHEMA:
                kind = GrammarKind.JSON_SCHEMA
                return AnswerForm.of_own(kind, self.schema, self.may_be_broken)
            case Way.CHOICES:
                choices = [each.strip() for each in self.choices.splitlines() if each.strip()]
                source = json.dumps(choices, ensure_ascii=False)
                return AnswerForm.of_own(GrammarKind.CHOICE, source)
            case Way.PATTERN:
                if not self.pattern:
                    raise GrammarError("There is no pattern yet: write one.")
                return AnswerForm.of_own(GrammarKind.REGEX, self.pattern)
        if not self.grammar.strip():
            raise GrammarError("There is no grammar yet: write one.")
        return AnswerForm.of_own(grammar_kind(self.grammar), self.grammar)


def draft_of(form: AnswerForm | None, ready: Mapping[str, ReadyForm]) -> FormDraft:
    """The draft that makes this form."""
    if form is None:
        return FormDraft()
    for name, each in ready.items():
        if AnswerForm.of_ready(each) == form:
            return FormDraft(Way.READY, ready=name)
    source = form.grammar.source
    match form.grammar.kind:
        case GrammarKind.JSON_SCHEMA:
            fields = None if form.grammar.is_approximate else fields_of(source)
            if fields is not None and form.title == BY_FIELDS:
                return FormDraft(Way.FORM, fields_as_json(fields.fields), fields.is_list)
            approximate = form.grammar.is_approximate
            return FormDraft(Way.SCHEMA, schema=source, is_approximate=approximate)
        case GrammarKind.CHOICE:
            try:
                return FormDraft(Way.CHOICES, choices="\n".join(choices_in(source)))
            except ValueError:
                # From elsewhere; nothing of it can be shown line by line.
                return FormDraft(Way.CHOICES)
        case GrammarKind.REGEX:
            return FormDraft(Way.PATTERN, pattern=source)
    return FormDraft(Way.GRAMMAR, grammar=source)
