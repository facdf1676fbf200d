"""How much of one text another one ends with, as it grows (Knuth, Morris and Pratt's search)."""

from collections.abc import Iterator
from typing import Generic, TypeVar

Text = TypeVar("Text", str, bytes)


class TextMatch(Generic[Text]):
    """Characters of a text are fed to it, or bytes of one in bytes. Owned by whoever feeds it."""

    def __init__(self, text: Text) -> None:
        self.text: Text = text
        self.length = 0
        # For each length of a match: the next shorter beginning that the match ends with.
        self._shorter = [0] * (len(text) + 1)
        length = 0
        for end in range(1, len(text)):
            while length and text[end] != text[length]:
                length = self._shorter[length]
            length += text[end] == text[length]
            self._shorter[end + 1] = length

    def copy(self) -> "TextMatch[Text]":
        other: TextMatch[Text] = object.__new__(TextMatch)
        # The table is never changed, so it is shared.
        other.text, other.length, other._shorter = self.text, self.length, self._shorter
        return other

    def advance(self, symbol: str | int) -> bool:
        """True when the text is complete with this character, or byte."""
        text = self.text
        if self.length == len(text):
            self.length = self._shorter[self.length]
        while self.length and symbol != text[self.length]:
            self.length = self._shorter[self.length]
        self.length += symbol == text[self.length]
        return self.length == len(text)

    def lengths(self) -> Iterator[int]:
        """Of every beginning that what was fed ends with, the longest first; none is empty."""
        length = self.length
        while length:
            yield length
            length = self._shorter[length]
