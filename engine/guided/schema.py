"""JSON Schemas before they are compiled: what is refused by us, and where a fault lies.

llguidance says what it cannot enforce, and not where. It also takes schemas that no finite answer
satisfies, and answers them without end; these are found here.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

from engine.errors import GrammarError

Schema = dict[str, Any]

MAX_BYTES = 256_000
MAX_DEPTH = 100
MAX_PROPERTIES = 1_000
MAX_CHOICES = 10_000
MAX_WHOLE = 2**53
"""llguidance keeps numbers as floats, which are exact up to here."""
# Parts that are compiled by themselves to find where a fault lies.
MOST_TRIED = 150

DATA = ("enum", "const", "default", "examples", "example")
"""What stands under these is no schema."""
_WITH_NUMBERS = (
    *("const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "multipleOf",
)
# What restricts nothing need not be enforced.
_WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "uniqueItems": (False,),
    "propertyNames": ({}, True),
    "dependencies": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "unevaluatedItems": ({}, True),
    "unevaluatedProperties": ({}, True),
}
_WITH_ONE = (
    *("additionalProperties", "additionalItems", "contains", "not", "if", "then", "else"),
    *("propertyNames", "unevaluatedProperties", "unevaluatedItems", "items"),
)
_WITH_LIST = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_WITH_MAP = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
# llguidance has none of these.
_UNKNOWN = (
    *("not", "if", "then", "else", "contains", "propertyNames", "dependentSchemas"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
# Parts that are only there to be referred to.
_DEFINITIONS = ("$defs", "definitions")


def read_schema(text: str) -> Schema:
    """The schema as it is compiled. Raises GrammarError for what no answer could satisfy."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise GrammarError(
            f"The schema has {len(text):,} characters, and at most {MAX_BYTES:,} bytes are taken:"
            " leave out what the answer does not need."
        )
    try:
        schema = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise GrammarError(
            f"The schema is no JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"The schema is no JSON: {str(error)[:100]}.") from error
    if schema is True:
        return {}
    if schema is False:
        raise GrammarError("The schema is 'false', which no answer satisfies: choose another.")
    if not isinstance(schema, dict):
        raise GrammarError('A schema must be a JSON object, such as {"type": "object"}.')
    try:
        json.dumps(schema, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise GrammarError("The schema has half a character in it (a lone surrogate).") from error
    _check_size(schema)
    rewritten: Schema = _rewritten(schema)
    path = _endless(rewritten)
    if path is not None:
        raise GrammarError(
            "The schema can never be satisfied: no answer of finite length is valid"
            f" {in_words(path)}."
        )
    return rewritten


def in_words(path: str) -> str:
    """Where that is, for a sentence."""
    return "at the top" if path == "#" else f"at {path}"


def parts(schema: Any, path: str = "#") -> Iterator[tuple[str, Schema]]:
    """A schema and all schemas in it, each with its JSON pointer; the outer ones first."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for place, part in _inner(schema, path):
        yield from parts(part, place)


def _inner(schema: Schema, path: str) -> Iterator[tuple[str, Any]]:
    """What stands right in a schema."""
    for name, value in schema.items():
        if name in _WITH_MAP and isinstance(value, dict):
            for key, part in value.items():
                yield f"{path}/{name}/{_escaped(key)}", part
        elif name in _WITH_LIST and isinstance(value, list):
            for index, part in enumerate(value):
                yield f"{path}/{name}/{index}", part
        elif name in _WITH_ONE:
            yield f"{path}/{name}", value


def locate(schema: Schema, fault_of: Callable[[Schema], str]) -> tuple[str, str]:
    """The innermost part that has a fault by itself: its JSON pointer and the fault.

    `fault_of` compiles a schema and says what is wrong with it, or nothing.
    """
    shared = {name: schema[name] for name in _DEFINITIONS if name in schema}
    by_path = dict(parts(schema))
    path, fault = "#", fault_of(schema)
    seen = {path}
    num_left = MOST_TRIED
    while True:
        part = by_path[path]
        below = [place for place, each in _inner(part, path) if isinstance(each, dict)]
        below = [place for place in below if not _is_beside(place, path)]
        target = _pointer(str(part.get("$ref", "")))
        found = None
        for place in [*below, *([target] if target in by_path else [])]:
            if place in seen or num_left == 0:
                continue
            seen.add(place)
            num_left -= 1
            if inner_fault := fault_of({**shared, **by_path[place]}):
                found = place, inner_fault
                break
        if found is None:
            return path, fault
        path, fault = found


def _is_beside(place: str, path: str) -> bool:
    """What stands there is no reason for the fault: a definition is one for whoever refers to it,
    and of a keyword that is not known at all it does not matter what it says."""
    return place.removeprefix(path + "/").split("/")[0] in (*_DEFINITIONS, *_UNKNOWN)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _check_size(schema: Schema) -> None:
    depth = _depth(schema)
    if depth > MAX_DEPTH:
        raise GrammarError(
            f"The schema is {depth} levels deep, and at most {MAX_DEPTH} are taken: make it"
            " flatter."
        )
    for path, part in parts(schema):
        for name in _WITH_NUMBERS:
            if not _is_exact(part.get(name)):
                raise GrammarError(
                    f"The schema has a whole number beyond {MAX_WHOLE:,} in {name!r}"
                    f" {in_words(path)}, which could not be kept to exactly: make it a text."
                )
        for name, most in (
            ("properties", MAX_PROPERTIES),
            ("patternProperties", MAX_PROPERTIES),
            ("enum", MAX_CHOICES),
            ("anyOf", MAX_PROPERTIES),
            ("oneOf", MAX_PROPERTIES),
        ):
            value = part.get(name)
            if isinstance(value, dict | list) and len(value) > most:
                raise GrammarError(
                    f"The schema has {len(value):,} entries in {name!r} {in_words(path)}, and at"
                    f" most {most:,} are taken: leave out what the answer does not need."
                )


def _is_exact(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_exact, value.values()))
    if isinstance(value, list):
        return all(map(_is_exact, value))
    return not isinstance(value, int) or abs(value) <= MAX_WHOLE


def _depth(value: Any) -> int:
    """Without recursion: a hostile one would be deeper than the interpreter's stack."""
    depth, level = 0, [value]
    while level:
        depth += 1
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
        level = [each for each in below if isinstance(each, dict | list)]
    return depth


def _rewritten(schema: Any) -> Any:
    """Without options for llguidance, which are ours to choose, and with OpenAPI's `nullable`."""
    if isinstance(schema, list):
        return [_rewritten(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    rewritten: Schema = {}
    for name, value in schema.items():
        if name in DATA:
            rewritten[name] = value
        elif name != "x-guidance" and value not in _WITHOUT_EFFECT.get(name, ()):
            rewritten[name] = _rewritten(value)
    kind = rewritten.get("type")
    if rewritten.get("nullable") is True and isinstance(kind, str | list):
        kinds = [kind] if isinstance(kind, str) else kind
        rewritten["type"] = [*kinds, *(["null"] if "null" not in kinds else [])]
        if isinstance(rewritten.get("enum"), list) and None not in rewritten["enum"]:
            rewritten["enum"] = [*rewritten["enum"], None]
        del rewritten["nullable"]
    return rewritten


def _endless(schema: Schema) -> str | None:
    """Where a schema needs itself to be satisfied, if it cannot be satisfied in finite length.

    The least fixed point of "has a finite instance": nothing has one until it is shown to.
    """
    all_parts = list(parts(schema))
    finite: set[int] = set()
    by_path = {path: part for path, part in all_parts}

    def is_finite(part: Any) -> bool:
        return id(part) in finite if isinstance(part, dict) else part is not False

    def can_end(part: Schema) -> bool:
        reference = part.get("$ref")
        if isinstance(reference, str):
            target = by_path.get(_pointer(reference))
            # What is elsewhere or nowhere is refused by the compiler.
            if target is not None and not is_finite(target):
                return False
        for name in ("anyOf", "oneOf"):
            choices = part.get(name)
            if isinstance(choices, list) and not any(map(is_finite, choices)):
                return False
        both = part.get("allOf")
        if isinstance(both, list) and not all(map(is_finite, both)):
            return False
        kind = part.get("type")
        kinds = kind if isinstance(kind, list) else [kind] if kind else None
        if "enum" in part or "const" in part:
            return part.get("enum") != []
        if kinds is None and not ("properties" in part or "items" in part or "prefixItems" in part):
            return True
        return any(_kind_can_end(each, part, is_finite) for each in kinds or ("object", "array"))

    changed = True
    while changed:
        changed = False
        for _, part in all_parts:
            if id(part) not in finite and can_end(part):
                finite.add(id(part))
                changed = True
    if id(schema) in finite:
        return None
    # The innermost one says most.
    return max((path for path, part in all_parts if id(part) not in finite), key=len)


def _kind_can_end(kind: object, part: Schema, is_finite: Callable[[Any], bool]) -> bool:
    if kind == "object":
        properties = part.get("properties")
        required = part.get("required")
        if not isinstance(properties, dict) or not isinstance(required, list):
            return True
        return all(is_finite(properties.get(name)) for name in required if isinstance(name, str))
    if kind == "array":
        least = part.get("minItems")
        num_needed = least if isinstance(least, int) else 0
        items = part.get("prefixItems") or part.get("items")
        if num_needed == 0:
            return True
        if isinstance(items, list):
            return all(map(is_finite, items[:num_needed]))
        return is_finite(items)
    return True


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _pointer(reference: str) -> str:
    """A `$ref` within the schema, written as our paths are."""
    return re.sub(r"/$", "", unquote(reference)) if reference.startswith("#") else reference
