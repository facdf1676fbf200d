"""Notebooks: what was written, the programs in them, and what those printed."""

import json
from collections.abc import Iterator, Mapping

from app.documents.blocks import Block, paginate
from app.documents.document import Facts, Page
from app.documents.encoding import decode
from app.documents.kinds import Kind
from app.documents.parsers import markdown
from app.documents.parsers.source import Source

MOST_OUTPUT = 4_000
"""Characters of one output: a program can print without end."""


def read(source: Source) -> Iterator[Page | Facts]:
    book = json.loads(decode(source.data, source.encoding))
    cells = book.get("cells") or [
        cell for sheet in book.get("worksheets", ()) for cell in sheet.get("cells", ())
    ]
    yield from paginate(_blocks(cells), "Part")
    yield Facts(kind=Kind.NOTEBOOK, num_pages=0)


def _blocks(cells: list[Mapping[str, object]]) -> Iterator[Block]:
    for cell in cells:
        written = _joined(cell.get("source", cell.get("input", "")))
        if cell.get("cell_type") == "markdown":
            yield from markdown.blocks(written.split("\n"))
            continue
        yield Block(text=written.expandtabs(4))
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else ():
            text = _printed(output).strip()
            if text:
                yield Block(text=text[:MOST_OUTPUT])


def _printed(output: Mapping[str, object]) -> str:
    data = output.get("data")
    if isinstance(data, dict):
        return _joined(data.get("text/plain", ""))
    return _joined(output.get("text", "")) or str(output.get("evalue", ""))


def _joined(text: object) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text)
