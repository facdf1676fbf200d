"""A console that remembers what was said."""

import json
from typing import Any


class Recorder:
    def __init__(self) -> None:
        self.out = ""
        self.notes: list[str] = []
        self.progressed: list[str] = []

    def write(self, text: str) -> None:
        self.out += text

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, text: str) -> None:
        self.progressed.append(text)

    def json(self) -> Any:
        """The one object that was written."""
        assert self.out.endswith("\n") and self.out.count("\n") == 1
        return json.loads(self.out)
