"""Where a command speaks: a terminal, or the process that asked the running app."""

import json
import re
import sys
from typing import Any, Protocol

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Console(Protocol):
    """`write` is the result, `note` is what a person may like to know beside it, `progress` what
    only somebody who waits for it may."""

    def write(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    def progress(self, text: str) -> None: ...


class Terminal:
    """Standard output and standard error of this process."""

    def write(self, text: str) -> None:
        if sys.stdout is None:
            return  # closed before we began
        if sys.stdout.isatty():
            text = shown(text)
        # A terminal with a narrow encoding must not lose an answer to one emoji.
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        sys.stdout.flush()

    def note(self, text: str) -> None:
        sys.stderr.write(shown(text) + "\n")
        sys.stderr.flush()

    def progress(self, text: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            self.note(text)


def shown(text: str) -> str:
    """What somebody wrote must not move the cursor or rename the window."""
    return CONTROL.sub("\ufffd", text)


def write_json(console: Console, value: Any) -> None:
    """One object and nothing else; in ASCII, which every terminal and pipe lets through."""
    console.write(json.dumps(value) + "\n")
