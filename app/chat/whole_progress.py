"""How far a document that is read whole has been read, for those who wait for it."""

from itertools import accumulate
from time import monotonic

from app.amounts import duration
from app.documents.whole_text import WholeText
from app.visible import visible


class WholeProgress:
    """Of one prompt, which begins with `num_tokens` of the document. Owned by who reads it."""

    def __init__(self, read: WholeText, num_tokens: int) -> None:
        self._read = read
        self._num_tokens = num_tokens
        self._ends = list(accumulate(len(part.text) for part in read.parts))
        self._begun: tuple[int, float] | None = None

    def after(self, num_read: int, now: float | None = None) -> str:
        """Once so much of the prompt is read, at `now` in seconds. Empty where the document is not
        begun, or read to its end."""
        if not 0 < num_read < self._num_tokens:
            return ""
        now = monotonic() if now is None else now
        if self._begun is None:
            # What was held of it before says nothing of how fast the rest is read.
            self._begun = num_read, now
        since, then = self._begun
        left = ""
        if num_read > since and now > then:
            seconds = (now - then) / (num_read - since) * (self._num_tokens - num_read)
            left = f" About {duration(max(1.0, seconds))} left."
        whole = self._read.whole
        pages = f"page {self._page(num_read)} of {whole.num_pages:,}"
        return (
            f"Reading {visible(whole.name)} from its beginning to its end: {pages}, {num_read:,} of"
            f" {self._num_tokens:,} tokens.{left}"
        )

    def _page(self, num_read: int) -> int:
        """About: tokens are not known page by page."""
        place = num_read / self._num_tokens * (self._ends[-1] if self._ends else 0)
        parts = zip(self._read.parts, self._ends, strict=True)
        return next((part.page for part, end in parts if end >= place), self._read.whole.num_pages)
