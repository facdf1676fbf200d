"""What llguidance cannot keep to in a schema, in the words of JSON Schema, and what helps."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

_LEAVE_OUT = "leave that out"


@dataclass(frozen=True, slots=True)
class Fault:
    """`words` name the keyword; `remedy` is what to do about it."""

    words: str
    remedy: str = _LEAVE_OUT


def fault_of(told: str) -> Fault:
    """What llguidance said, understood; its own words in brackets where it is something else."""
    for pattern, understand in _KNOWN:
        if found := re.search(pattern, told):
            return understand(found)
    return Fault(f"something in it is not understood ({told})")


def _unknown_keywords(found: re.Match[str]) -> Fault:
    names = " and ".join(f"{name!r}" for name in json.loads(found[1]))
    return Fault(f"{names} cannot be seen to while an answer is written")


def _says(words: str, remedy: str = _LEAVE_OUT) -> Callable[[re.Match[str]], Fault]:
    return lambda found: Fault(words.format(*found.groups()), remedy)


_KNOWN: list[tuple[str, Callable[[re.Match[str]], Fault]]] = [
    (r"Unimplemented keys: (\[.*?\])", _unknown_keywords),
    (
        "oneOf constraints are not supported",
        _says(
            "the choices of 'oneOf' are not seen to exclude each other",
            "write 'anyOf' if they do, or if more than one may hold",
        ),
    ),
    (
        r"Unknown format: (\S+)",
        _says("the 'format' {!r} cannot be seen to", "write a 'pattern' instead"),
    ),
    (
        r"min/maxProperties only supported",
        _says(
            "'minProperties' and 'maxProperties' cannot be counted beside optional 'properties'",
            "make all of them 'required'",
        ),
    ),
    (
        r"(?i)look-?around|WordUnicode|WordAscii|backreference",
        _says("its 'pattern' looks ahead, behind or back", "write it without"),
    ),
    (
        r"patternProperty regexes /(.*)/ and /(.*)/ are not disjoint",
        _says(
            "one key may match two of the 'patternProperties', {!r} and {!r}",
            "write them so that no key does",
        ),
    ),
    (
        "circular references with sibling keys",
        _says("other keywords stand beside a '$ref' that comes back to itself"),
    ),
    (
        "Unsatisfiable schema: (.*)",
        _says("nothing satisfies all of it ({})", "change it"),
    ),
]
