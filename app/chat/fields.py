"""A form that is built field by field: a JSON Schema that anyone can write.

What stands in a schema of this kind is read back into its fields, so nothing but the schema is
stored.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from engine.errors import GrammarError

MOST_FIELDS = 100
LONGEST_NAME = 200


class FieldKind(Enum):
    """What a field holds."""

    TEXT = "text"
    NUMBER = "number"
    WHOLE_NUMBER = "whole number"
    YES_NO = "yes or no"
    ONE_OF = "one of"
    TEXTS = "list of texts"
    DATE = "date"
    EMAIL = "e-mail"


_SCHEMAS: Mapping[FieldKind, Mapping[str, Any]] = {
    FieldKind.TEXT: {"type": "string"},
    FieldKind.NUMBER: {"type": "number"},
    FieldKind.WHOLE_NUMBER: {"type": "integer"},
    FieldKind.YES_NO: {"type": "boolean"},
    FieldKind.TEXTS: {"type": "array", "items": {"type": "string"}},
    FieldKind.DATE: {"type": "string", "format": "date"},
    FieldKind.EMAIL: {"type": "string", "format": "email"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """`choices` are those of `ONE_OF`; `meaning` is told to the model."""

    name: str
    kind: FieldKind = FieldKind.TEXT
    is_needed: bool = True
    meaning: str = ""
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        meaning = {"description": self.meaning} if self.meaning else {}
        if self.kind is FieldKind.ONE_OF:
            return {"type": "string", "enum": list(self.choices), **meaning}
        return {**_SCHEMAS[self.kind], **meaning}


@dataclass(frozen=True, slots=True)
class Fields:
    """`is_list`: the answer has as many entries with these fields as it likes, at least one."""

    fields: tuple[Field, ...]
    is_list: bool = False

    def source(self) -> str:
        """As a JSON Schema; the answer has the fields in this order and no others.

        Raises GrammarError for fields that make no form.
        """
        self._check()
        entry: dict[str, Any] = {
            "type": "object",
            "properties": {each.name: each.schema() for each in self.fields},
            "required": [each.name for each in self.fields if each.is_needed],
            "additionalProperties": False,
        }
        schema = {"type": "array", "items": entry, "minItems": 1} if self.is_list else entry
        return json.dumps(schema, ensure_ascii=False, indent=2)

    def _check(self) -> None:
        if not self.fields:
            raise GrammarError("There is no field yet: add one.")
        if len(self.fields) > MOST_FIELDS:
            raise GrammarError(
                f"There are {len(self.fields)} fields, and at most {MOST_FIELDS} are taken: leave"
                " some out, or write a JSON Schema."
            )
        seen: set[str] = set()
        for number, each in enumerate(self.fields, 1):
            if not each.name.strip():
                raise GrammarError(f"Field {number} has no name: give it one.")
            if each.name in seen:
                raise GrammarError(f"Two fields are called “{each.name}”: rename field {number}.")
            seen.add(each.name)
            if each.kind is FieldKind.ONE_OF and len(set(each.choices)) < 2:
                raise GrammarError(
                    f"“{each.name}” is one of several: write at least two choices, with commas"
                    " between them."
                )


def fields_of(source: str) -> Fields | None:
    """The fields that make exactly this schema; None when there are none."""
    try:
        found = json.loads(source)
    except (ValueError, RecursionError):
        return None
    is_list = isinstance(found, dict) and found.get("type") == "array"
    entry = found.get("items") if is_list else found
    if not isinstance(entry, dict) or not isinstance(entry.get("properties"), dict):
        return None
    required = entry.get("required")
    if not isinstance(required, list):
        return None
    read = [_field_of(name, part, name in required) for name, part in entry["properties"].items()]
    fields = Fields(tuple(each for each in read if each is not None), is_list)
    try:
        is_same = json.loads(fields.source()) == found
    except GrammarError:
        return None
    return fields if is_same else None


def fields_as_json(fields: Sequence[Field]) -> str:
    """As the page edits them."""
    return json.dumps(
        [
            {
                "name": each.name,
                "kind": each.kind.value,
                "is_needed": each.is_needed,
                "meaning": each.meaning,
                "choices": list(each.choices),
            }
            for each in fields
        ],
        ensure_ascii=False,
    )


def fields_from_json(text: str) -> tuple[Field, ...]:
    """Raises GrammarError for what the page does not write."""
    try:
        return tuple(_read_field(each) for each in json.loads(text or "[]"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise GrammarError("The fields could not be read: reload the page.") from error


def _read_field(found: Mapping[str, Any]) -> Field:
    choices = [" ".join(str(each).split()) for each in found["choices"]]
    return Field(
        name=" ".join(str(found["name"]).split())[:LONGEST_NAME],
        kind=FieldKind(found["kind"]),
        is_needed=bool(found["is_needed"]),
        meaning=str(found["meaning"]).strip(),
        # Each once, in the order in which they were written.
        choices=tuple(dict.fromkeys(each for each in choices if each)),
    )


def _field_of(name: str, part: object, is_needed: bool) -> Field | None:
    if not isinstance(part, dict):
        return None
    meaning = part.get("description", "")
    bare = {key: value for key, value in part.items() if key != "description"}
    if not isinstance(meaning, str):
        return None
    choices = bare.pop("enum", None)
    if choices is not None:
        is_texts = isinstance(choices, list) and all(isinstance(each, str) for each in choices)
        kind = FieldKind.ONE_OF if is_texts and bare == {"type": "string"} else None
    else:
        kind = next((kind for kind, schema in _SCHEMAS.items() if schema == bare), None)
    if kind is None:
        return None
    return Field(
        name=name,
        kind=kind,
        is_needed=is_needed,
        meaning=meaning,
        choices=tuple(choices or ()),
    )
