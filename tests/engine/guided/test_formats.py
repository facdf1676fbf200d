"""Days and times that exist are accepted, and no others."""

import pytest

from tests.engine.guided.forms import accepts, of_schema


@pytest.mark.parametrize(
    ("kind", "text", "is_one"),
    [
        ("date", "2026-11-30", True),
        ("date", "2024-02-29", True),
        ("date", "2000-02-29", True),
        ("date", "2021-02-29", False),
        ("date", "2100-02-29", False),
        ("date", "0100-02-29", False),
        ("date", "2026-11-31", False),
        ("date", "2026-13-01", False),
        ("date", "0000-01-01", False),
        ("date", "2026-1-1", False),
        ("time", "17:05:00Z", True),
        ("time", "17:05:00.123+01:30", True),
        ("time", "24:00:00Z", False),
        ("time", "17:05:00", False),
        ("time", "23:59:60Z", False),
        ("date-time", "2024-02-29T00:00:00Z", True),
        ("date-time", "2023-02-29T00:00:00Z", False),
        ("date-time", "2024-02-29 00:00:00Z", False),
    ],
)
def test_a_day_or_a_time_is_one_that_exists(kind: str, text: str, is_one: bool) -> None:
    assert accepts(of_schema({"type": "string", "format": kind}), f'"{text}"') == is_one


def test_a_format_beside_a_pattern_is_kept_to_with_it() -> None:
    schema = {"type": "string", "format": "date", "pattern": "^20"}
    assert accepts(of_schema(schema), '"2024-02-29"')
    assert not accepts(of_schema(schema), '"1999-02-28"')
    assert not accepts(of_schema(schema), '"2021-02-29"')


def test_a_format_that_nobody_knows_restricts_nothing_and_a_name_is_no_format() -> None:
    schema = {
        "type": "object",
        "properties": {"format": {"type": "string", "format": "topic"}},
        "required": ["format"],
    }
    assert accepts(of_schema(schema), '{"format": "anything"}')
    assert not accepts(of_schema(schema), "{}")
