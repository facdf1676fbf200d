"""What the rest of the house may ask of a vocabulary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

THINKING_TAGS: Mapping[str, str] = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
}
"""How models mark their thinking: opening tag to closing tag. No opening tag begins another one.

Where a vocabulary has them as control tokens, they are shown, or nothing could be split.
"""


@dataclass(frozen=True, slots=True)
class ControlToken:
    """A token with a meaning of its own, such as the end of a turn.

    `strips_left` and `strips_right` say that white space beside it belongs to it.
    """

    token_id: int
    text: str
    strips_left: bool = False
    strips_right: bool = False


def is_shown(control_text: str) -> bool:
    """Whether a control token belongs to an answer's text: a thinking tag, or its beginning."""
    tags = (*THINKING_TAGS, *THINKING_TAGS.values())
    return any(tag.startswith(control_text) for tag in tags)


class Tokenizer(Protocol):
    """Text to token ids and back. Safe to call from any thread."""

    @property
    def num_tokens(self) -> int: ...

    @property
    def num_end_tokens(self) -> int:
        """How many tokens end an answer."""
        ...

    @property
    def bos_id(self) -> int | None:
        """The token every prompt starts with, or None where the model wants none."""
        ...

    @property
    def control_tokens(self) -> Mapping[str, ControlToken]:
        """By text. Only these are special; whatever else looks special is text."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids of plain text: never a control token, whatever the text spells, and no BOS."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """What the token adds to an answer; b"" for control tokens that are not shown.

        Raises IndexError for an id that the vocabulary does not have.
        """
        ...

    def is_end(self, token_id: int) -> bool:
        """True for every token that ends a generation."""
        ...


def encode_continuation(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of a text that goes on another one.

    Some vocabularies put a space before every text; in the middle of one it is wrong.
    """

    def spell(token_ids: Sequence[int]) -> bytes:
        return b"".join(map(tokenizer.token_bytes, token_ids))

    token_ids = tokenizer.encode(text)
    if spell(token_ids) == text.encode("utf-8", "replace"):
        return token_ids
    lead = "\x02"
    longer = tokenizer.encode(lead + text)
    for index in range(1, len(longer)):
        if spell(longer[:index]).endswith(lead.encode()):
            rest = longer[index:]
            return rest if spell(rest) == text.encode("utf-8", "replace") else token_ids
    return token_ids
