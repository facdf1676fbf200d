"""Examples: two texts each, of a size that leaves room."""

import pytest

from app.chat.example import Example, examples_as_json, examples_from_json
from engine.errors import UsageError


def test_they_come_back_from_json() -> None:
    examples = (Example("a", "b"), Example("<b>", "&"))
    assert examples_from_json(examples_as_json(examples)) == examples
    assert examples_from_json([]) == ()


@pytest.mark.parametrize(
    "found", [None, {}, "x", [1], [{"user": "a"}], [{"user": 1, "assistant": 2}]]
)
def test_what_is_no_list_of_pairs_is_refused(found: object) -> None:
    with pytest.raises(UsageError):
        examples_from_json(found)
