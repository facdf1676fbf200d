"""One thing of this machine that was looked at, and what is to be done about it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """`remedy` is empty when it is well."""

    name: str
    ok: bool
    message: str
    remedy: str = ""


class Failed(Exception):
    """A check that did not hold: what was seen, and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
