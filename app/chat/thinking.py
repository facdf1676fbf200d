"""The border between what a model thinks and what it answers, found while it still writes."""

from enum import Enum, auto

from engine.tokenizer import THINKING_TAGS

NEWLINES = "\r\n"


class _Place(Enum):
    START = auto()
    THINKING = auto()
    AFTER = auto()
    ANSWER = auto()


class ThinkingSplitter:
    """Divides one answer, piece by piece. Owned by whoever reads the stream.

    Thinking can only open the text: a tag further on, or inside a code block, is something the
    model talks about. How the text was cut into pieces never changes the result. Line breaks
    around the tags belong to the tags.

    `opened_tag` is the tag with which the prompt ended, or empty; a model that writes it once more
    is understood as well.
    """

    def __init__(self, opened_tag: str = "") -> None:
        self._starts_inside = bool(opened_tag)
        self._closing = THINKING_TAGS.get(opened_tag, "")
        self._place = _Place.START
        self._held = ""
        self._has_thinking = False

    @property
    def is_thinking(self) -> bool:
        """The next piece would be read as thinking."""
        if self._place is _Place.START:
            return self._starts_inside
        return self._place is _Place.THINKING

    def feed(self, text: str) -> tuple[str, str]:
        """What the piece adds to the thinking and to the answer; a possible tag waits."""
        self._held += text
        thinking = answer = ""
        if self._place is _Place.START:
            self._begin()
        if self._place is _Place.THINKING:
            thinking = self._think()
        if self._place is _Place.AFTER:
            self._held = self._held.lstrip(NEWLINES)
            if self._held:
                self._place = _Place.ANSWER
        if self._place is _Place.ANSWER:
            answer, self._held = self._held, ""
        return thinking, answer

    def finish(self) -> tuple[str, str]:
        """The text has ended: what was held back turns out to be no tag."""
        held, self._held = self._held, ""
        if self.is_thinking:
            return self._trim(held).rstrip(NEWLINES), ""
        return "", held

    def _begin(self) -> None:
        start = self._held.lstrip()
        for opening, closing in THINKING_TAGS.items():
            if start.startswith(opening):
                self._closing = closing
                self._held = start[len(opening) :]
                self._place = _Place.THINKING
                return
            if opening.startswith(start):
                return
        self._place = _Place.THINKING if self._starts_inside else _Place.ANSWER

    def _think(self) -> str:
        end = self._held.find(self._closing)
        if end >= 0:
            thinking = self._held[:end].rstrip(NEWLINES)
            self._held = self._held[end + len(self._closing) :]
            self._place = _Place.AFTER
            return self._trim(thinking)
        body = self._held[: len(self._held) - _overlap(self._held, self._closing)]
        body = body.rstrip(NEWLINES)
        self._held = self._held[len(body) :]
        return self._trim(body)

    def _trim(self, thinking: str) -> str:
        """Drop line breaks before the first thought."""
        if not self._has_thinking:
            thinking = thinking.lstrip(NEWLINES)
        self._has_thinking = self._has_thinking or bool(thinking)
        return thinking


def _overlap(text: str, tag: str) -> int:
    """The length of the longest end of `text` that begins `tag`."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:length]):
            return length
    return 0
