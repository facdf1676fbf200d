"""The detokenizer: token ids in, pieces of text out, up to a stop text."""

import codecs

from engine.text_match import TextMatch
from engine.tokenizer import Tokenizer


class Detokenizer:
    """Turns one answer's tokens into text as they come. Owned by whoever feeds it.

    Half a character waits for its other half, and what may be the beginning of a stop text waits
    until it is one or not. However the tokens cut the text, the pieces join to the same text. Of
    several stop texts the one that is complete first ends the answer; of those complete at the
    same character, the longest.
    """

    def __init__(self, tokenizer: Tokenizer, stop: tuple[str, ...]) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._matches = [TextMatch(text) for text in stop]
        self._held = ""
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """A stop text was found; all the text before it has been given."""
        return self._stopped

    def feed(self, token_id: int) -> str:
        """The text that is certain now and was not given before."""
        if self._stopped:
            return ""
        text = self._decoder.decode(self._tokenizer.token_bytes(token_id))
        if not self._matches:
            return text
        for index, character in enumerate(text):
            found = 0
            for match in self._matches:
                if match.advance(character):
                    found = max(found, len(match.text))
            if found:
                self._stopped = True
                certain = self._held + text[: index + 1]
                self._held = ""
                return certain[: len(certain) - found]
        text = self._held + text
        num_held = max(match.length for match in self._matches)
        certain, self._held = text[: len(text) - num_held], text[len(text) - num_held :]
        return certain

    def finish(self) -> str:
        """The text that was held back, when no more tokens come; half a character is dropped."""
        held, self._held = self._held, ""
        return held
