"""Pictures and sounds that were added to a message before it is sent: in memory only."""

import secrets
from collections.abc import Iterable

from app.media.attachment import Attachment
from engine.errors import UsageError

MOST_BYTES = 300_000_000
MOST_IN_MESSAGE = 16


class Pending:
    """By an id that nobody can guess. The oldest go when there are too many. Owned by the event
    loop."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Attachment, int]] = {}

    def add(self, attachment: Attachment) -> str:
        """The id that it can be asked for by. The newest one is always kept."""
        number = secrets.token_hex(12)
        self._kept[number] = attachment, len(attachment.read()) + len(attachment.preview)
        while sum(size for _, size in self._kept.values()) > MOST_BYTES and len(self._kept) > 1:
            del self._kept[next(iter(self._kept))]
        return number

    def get(self, number: str) -> Attachment | None:
        kept = self._kept.get(number)
        return None if kept is None else kept[0]

    def all(self, numbers: Iterable[str]) -> tuple[Attachment, ...]:
        """Raises UsageError when one of them is gone."""
        found = [self.get(number) for number in numbers]
        there = tuple(each for each in found if each is not None)
        if len(there) < len(found):
            raise UsageError("A picture of this message is gone: take it away and add it again.")
        if len(there) > MOST_IN_MESSAGE:
            raise UsageError(
                f"A message may have {MOST_IN_MESSAGE} pictures and sounds, and this one has"
                f" {len(there)}: send the others with another message."
            )
        return there

    def forget(self, numbers: Iterable[str]) -> None:
        """They were sent, or are not wanted any more."""
        for number in numbers:
            self._kept.pop(number, None)
