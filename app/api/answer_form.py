"""The form of an answer in the fields of a request: OpenAI's, llama.cpp's and vLLM's."""

import json
from collections.abc import Mapping
from typing import Any

from engine.errors import UsageError
from engine.guided.grammar import Grammar, GrammarKind, grammar_kind

FIELDS = frozenset({"response_format", "grammar", "structured_outputs"})
_ANY_OBJECT = '{"type": "object"}'


def read_form(body: Mapping[str, Any]) -> Grammar | None:
    """Raises UsageError for a form that is not known, or more than one."""
    forms = [
        form
        for form in (
            _of_response_format(body.get("response_format")),
            _of_grammar(body.get("grammar")),
            _of_structured_outputs(body.get("structured_outputs")),
        )
        if form is not None
    ]
    if len(forms) > 1:
        raise UsageError(
            "An answer can have one form: give one of 'response_format', 'grammar' and"
            " 'structured_outputs'."
        )
    return forms[0] if forms else None


def _of_response_format(value: object) -> Grammar | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise UsageError("The field 'response_format' must be an object.")
    match value.get("type"):
        case "text":
            return None
        case "json_object":
            # Also as llama.cpp takes it, with a schema.
            schema = value.get("schema")
            source = _ANY_OBJECT if schema is None else json.dumps(schema, ensure_ascii=False)
            return Grammar(GrammarKind.JSON_SCHEMA, source)
        case "json_schema":
            schema = value.get("json_schema")
            if not isinstance(schema, dict) or "schema" not in schema:
                raise UsageError("response_format.json_schema.schema must be a JSON Schema.")
            source = json.dumps(schema["schema"], ensure_ascii=False)
            return Grammar(GrammarKind.JSON_SCHEMA, source)
    raise UsageError("response_format.type must be text, json_object or json_schema.")


def _of_grammar(value: object) -> Grammar | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise UsageError("The field 'grammar' must be a text, in GBNF or Lark.")
    return Grammar(grammar_kind(value), value)


def _of_structured_outputs(value: object) -> Grammar | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise UsageError("The field 'structured_outputs' must be an object.")
    given = {name: form for name, form in value.items() if form is not None}
    if len(given) != 1:
        raise UsageError(
            "The field 'structured_outputs' must have one of json, regex, choice and grammar."
        )
    ((name, form),) = given.items()
    match name:
        case "json":
            source = form if isinstance(form, str) else json.dumps(form, ensure_ascii=False)
            return Grammar(GrammarKind.JSON_SCHEMA, source)
        case "regex":
            if not isinstance(form, str):
                raise UsageError("structured_outputs.regex must be a text.")
            return Grammar(GrammarKind.REGEX, form)
        case "choice":
            return Grammar(GrammarKind.CHOICE, json.dumps(form, ensure_ascii=False))
        case "grammar":
            return _of_grammar(form)
    raise UsageError(f"structured_outputs.{name} is not supported: leave it out.")
