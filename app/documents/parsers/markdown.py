"""Markdown as it is written, with its headings known and its tables as rows."""

import re
from collections.abc import Iterable, Iterator

from app.documents.blocks import Block, paginate
from app.documents.document import Facts, Page
from app.documents.encoding import lines
from app.documents.kinds import Kind
from app.documents.parsers.source import Source
from app.documents.tables import simple_lines

HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
TABLE_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
OPEN_COMMENT = re.compile(r"<!--.*", re.DOTALL)
MOST_LINES = 400
"""Of one block: a longer one is taken in pieces."""


def read(source: Source) -> Iterator[Page | Facts]:
    title = ""
    written = lines(source.data, source.encoding)

    def watched() -> Iterator[Block]:
        nonlocal title
        for block in blocks(written):
            title = title or (block.text if block.level == 1 else "")
            yield block

    yield from paginate(watched(), "Paragraph")
    yield Facts(kind=Kind.MARKDOWN, num_pages=0, title=title)


def blocks(written: Iterable[str]) -> Iterator[Block]:
    held: list[str] = []
    fence = ""
    for line in written:
        mark = FENCE.match(line)
        if fence:
            held.append(line)
            if mark and mark[1].startswith(fence) or len(held) >= MOST_LINES:
                fence = "" if mark and mark[1].startswith(fence) else fence
                yield Block(text="\n".join(held))
                held = []
            continue
        if mark:
            yield from _end(held)
            held, fence = [line], mark[1]
        elif found := HEADING.match(line):
            yield from _end(held)
            held = []
            yield Block(text=found[2], level=len(found[1]))
        elif not line.strip() and not _in_comment(held):
            yield from _end(held)
            held = []
        elif len(held) == 1 and (found := UNDERLINE.match(line)) and "|" not in held[0]:
            yield Block(text=held.pop(), level=1 if "=" in found[1] else 2)
        else:
            held.append(line)
            if len(held) >= MOST_LINES:
                yield from _end(held)
                held = []
    if fence:
        yield Block(text="\n".join(held))
    else:
        yield from _end(held)


def _in_comment(held: list[str]) -> bool:
    text = "\n".join(held)
    return text.count("<!--") > text.count("-->")


def _end(held: list[str]) -> Iterator[Block]:
    text = "\n".join(held)
    shown = OPEN_COMMENT.sub("", COMMENT.sub("", text))
    hides = shown != text
    kept = shown.split("\n")
    if len(kept) > 1 and "|" in kept[0] and TABLE_RULE.match(kept[1]):
        rows = [_cells(row) for row in (kept[0], *kept[2:])]
        for number, line in enumerate(simple_lines(rows, has_names=True)):
            yield Block(text=line, follows=number > 0, hides=hides and number == 0)
    elif shown.strip() or hides:
        yield Block(text=shown, hides=hides)


def _cells(row: str) -> list[str]:
    return [cell.replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]
