"""Whether a finished answer satisfies its schema, by a validator that knows every keyword."""

import json
import re
from typing import Any

import jsonschema
from referencing import Registry
from referencing.exceptions import Unresolvable

from engine.errors import GrammarError
from engine.guided.schema import read_schema


class AnswerValidator:
    """Of one schema, for answers that the grammar could keep to it only in part."""

    def __init__(self, source: str) -> None:
        """Raises GrammarError when it is no schema."""
        schema = read_schema(source)
        if not isinstance(schema.get("$schema", ""), str):
            raise GrammarError("The '$schema' of a schema must be a text.")
        kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        # An empty registry: nothing is ever fetched.
        self._validator = kind(schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER)

    def fault_of(self, text: str) -> str:
        """What is wrong with an answer, with its place in it; empty when nothing is."""
        try:
            answer: Any = json.loads(text)
        except (ValueError, RecursionError):
            return "it is no JSON"
        try:
            error = next(iter(self._validator.iter_errors(answer)), None)
        except (
            Unresolvable,
            RecursionError,
            re.error,
            # What stands under a keyword is of another kind than it must be.
            TypeError,
            AttributeError,
            ValueError,
            KeyError,
            jsonschema.exceptions.SchemaError,
            jsonschema.exceptions.UnknownType,
        ) as problem:
            return f"it could not be checked ({str(problem)[:100]})"
        if error is None:
            return ""
        place = "the top" if error.json_path == "$" else error.json_path
        return f"{error.message[:200]} at {place}"
