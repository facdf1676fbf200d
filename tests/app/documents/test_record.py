"""What was stored is read part by part, and what is not as it is written is refused."""

import pytest

from app.documents.record import Record


@pytest.fixture
def record() -> Record:
    found = {"name": "Inn", "kinds": ["a", "b"], "mixed": ["a", 1], "num": 3, "is_odd": True}
    return Record.of(found, "a river")


def test_parts_are_what_they_are_to_be(record: Record) -> None:
    assert record.text("name") == "Inn" and record.texts("kinds") == ("a", "b")
    assert record.list("mixed") == ["a", 1] and record.number("num") == 3


def test_what_is_missing_is_empty(record: Record) -> None:
    assert record.text("title") == "" and record.texts("paths") == () and record.list("all") == []
    assert record.number("page", 0) == 0
    with pytest.raises(ValueError, match="'page' of a river is a whole number"):
        record.number("page")


def test_what_is_something_else_is_refused(record: Record) -> None:
    with pytest.raises(ValueError, match="'num' of a river is a text"):
        record.text("num")
    with pytest.raises(ValueError, match="'mixed' of a river is a list of texts"):
        record.texts("mixed")
    with pytest.raises(ValueError, match="'kinds' of a river has 2 texts"):
        record.texts("kinds", most=1)
    with pytest.raises(ValueError, match="'name' of a river is a list"):
        record.list("name")
    for name in ("name", "is_odd"):
        with pytest.raises(ValueError, match="whole number"):
            record.number(name)
    with pytest.raises(ValueError, match="a river is an object"):
        Record.of([], "a river")
