"""What a parser is given, and what a parser is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.documents.document import Facts, Page
from app.documents.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that has passed the gate. `depth` counts the files that it lies in."""

    data: bytes
    name: str
    kind: Kind
    encoding: str = ""
    password: str = ""
    depth: int = 0


Parser = Callable[[Source], Iterator[Page | Facts]]
"""Gives pages, and last the Facts; also first, where their number is known beforehand. Only what is
handed out now is held. Raises Unreadable, or what its library raises for a damaged file."""
