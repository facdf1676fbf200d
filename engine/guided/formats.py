"""Formats that are kept to as patterns: days that exist, and times without leap seconds.

llguidance knows them too, and takes the 29th of February of every year.
"""

from typing import Any

from engine.guided.schema import DATA

_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP_YEAR}-02-29)"
)
_HOUR_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_HOUR_MINUTE}:[0-5][0-9](?:\.[0-9]{{1,9}})?(?:[Zz]|[+-]{_HOUR_MINUTE})"

KNOWN = frozenset(
    [
        *("date-time", "date", "time", "duration", "email", "idn-email", "hostname"),
        *("idn-hostname", "ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference"),
        *("uuid", "uri-template", "json-pointer", "relative-json-pointer", "regex"),
    ]
)
"""Those of JSON Schema 2020-12. What is not enforced of them is refused."""

PATTERNS = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}[Tt]{_TIME}$",
}


def with_patterns(schema: Any) -> Any:
    """The same schema, with a pattern in the place of each of these formats, and without formats
    that JSON Schema does not know: they say something to a reader and restrict nothing."""
    if isinstance(schema, list):
        return [with_patterns(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    rewritten = {
        name: value if name in DATA else with_patterns(value) for name, value in schema.items()
    }
    # Under `properties` a format is somebody's name for something.
    name = rewritten.get("format")
    if not isinstance(name, str):
        return rewritten
    pattern = PATTERNS.get(name)
    if pattern is not None or name not in KNOWN:
        del rewritten["format"]
    if pattern is not None:
        if "pattern" in rewritten:
            rewritten["allOf"] = [*rewritten.get("allOf", []), {"pattern": pattern}]
        else:
            rewritten["pattern"] = pattern
    return rewritten
