"""Examples that stand before a conversation: what somebody says, and how the answer should be.

They are turns like all others for the model, and text like all other text: what looks like a
control token in them stays text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.errors import UsageError

MOST_EXAMPLES = 32
LONGEST_TEXT = 20_000
"""Characters of each side; a few long ones fill a context."""


@dataclass(frozen=True, slots=True)
class Example:
    """Both sides have text. Raises UsageError for what is none, or too long."""

    user: str
    assistant: str

    def __post_init__(self) -> None:
        for side in (self.user, self.assistant):
            if not isinstance(side, str) or not side.strip():
                raise UsageError("An example needs a message and the answer to it.")
            if len(side) > LONGEST_TEXT:
                raise UsageError(
                    f"A text of an example may have {LONGEST_TEXT:,} characters, and one has"
                    f" {len(side):,}: shorten it."
                )


def examples_as_json(examples: Sequence[Example]) -> list[dict[str, str]]:
    return [{"user": each.user, "assistant": each.assistant} for each in examples]


def examples_from_json(found: object) -> tuple[Example, ...]:
    """Raises UsageError for what `examples_as_json` does not write."""
    if not isinstance(found, list) or not all(_is_pair(each) for each in found):
        raise UsageError("Examples must be a list of objects with `user` and `assistant`.")
    if len(found) > MOST_EXAMPLES:
        raise UsageError(f"There may be {MOST_EXAMPLES} examples, and these are {len(found):,}.")
    return tuple(Example(each["user"], each["assistant"]) for each in found)


def _is_pair(found: Any) -> bool:
    return isinstance(found, Mapping) and found.keys() == {"user", "assistant"}
