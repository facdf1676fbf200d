"""Which lines of a markdown text are fenced code for certain, whoever reads them.

Between fences HTML is left alone, so a doubt counts as no fence: after it, nothing is code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(
    r"(?P<quote>[ ]{0,3}>[ ]?)?(?P<indent>[ ]*)(?P<item>(?:[-*+]|1[.)])[ ]{1,3})?"
    r"(?P<mark>`{3,}(?=[^`<\[]*$)|~{3,}(?=[^<\[]*$))"
)
LIKE_A_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t>]*)*(?:`{3}|~{3})")
ITEM = re.compile(r"(?P<offset>[ ]{0,3}(?P<bullet>[-*+]|\d+[.)])[ ]{1,3})[^ \-*_]")
MATHS = (r"\$\$[\s\S]+?\$\$", r"\\\([\s\S]+?\\\)", r"\\\[[\s\S]+?\\\]")


@dataclass(frozen=True, slots=True)
class Part:
    """Whole lines: code with its fences, or anything else."""

    text: str
    is_code: bool = False
    to_close: str = ""
    """The line that ends it, if it is code that nothing ends."""


def parts(text: str) -> Iterator[Part]:
    """All of `text`, in order."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    # The page takes formulas out before it looks for fences, wherever they stand.
    formulas = [formula.span() for maths in MATHS for formula in re.finditer(maths, text)]
    begun = index = 0
    while index < len(lines):
        if not LIKE_A_FENCE.match(lines[index]):
            index += 1
            continue
        fence = FENCE.match(lines[index].rstrip("\n"))
        end = _end(fence, lines, index) if fence and _is_certain(fence, lines, index) else None
        if fence is None and _is_span(lines[index]):
            index += 1
            continue
        if fence is None or end is None:
            break
        code, is_closed = "".join(lines[index : abs(end)]), end > 0
        start = len("".join(lines[:index]))
        if any(low < edge < high for edge in (start, start + len(code)) for low, high in formulas):
            break
        if begun < index:
            yield Part("".join(lines[begun:index]))
        line_end = "" if code.endswith("\n") else "\n"
        prefix = (fence["quote"] or "") + " " * _width(fence)
        yield Part(code, True, "" if is_closed else f"{line_end}{prefix}{fence['mark']}")
        begun = index = abs(end)
    if begun < len(lines):
        yield Part("".join(lines[begun:]))


def _is_span(line: str) -> bool:
    """Whether the line begins with marks that another one like it on the line makes a span."""
    return "`" in LIKE_A_FENCE.sub("", line, count=1).lstrip("`")


def _width(fence: re.Match[str]) -> int:
    """How far its lines are indented."""
    return len(fence["indent"]) + len(fence["item"] or "")


def _is_certain(fence: re.Match[str], lines: list[str], index: int) -> bool:
    """Whether this line cannot be the middle of a paragraph."""
    if len(fence["indent"]) <= 3:
        return True
    if fence["quote"] or fence["item"]:
        return False
    before = lines[index - 1] if index else "\n"
    if not before.strip():
        return True
    item = ITEM.match(before)
    if item is None or not 0 <= len(fence["indent"]) - len(item["offset"]) <= 3:
        return False
    begins_list = item["bullet"] in "-*+" or item["bullet"][:-1] == "1"
    return begins_list or index < 2 or not lines[index - 2].strip()


def _end(fence: re.Match[str], lines: list[str], index: int) -> int | None:
    """The line after the fence's last; negative if it is still open, None if that is in doubt."""
    width, mark = _width(fence), fence["mark"]
    for number in range(index + 1, len(lines)):
        line = lines[number].removesuffix("\n")
        if fence["quote"]:
            quote = re.match(r"[ ]{0,3}>[ ]?", line)
            if quote is None:
                return None
            line = line[quote.end() :]
        bare = line.expandtabs(4)
        indent = len(bare) - len(bare.lstrip(" "))
        if not bare.strip():
            continue
        if indent < width:
            return None
        marks = bare.strip()
        if not marks.startswith(mark) or marks.strip("`~"):
            continue
        if marks.strip(mark[0]) or "\t" in line:
            return None
        if indent == width or indent <= 3:
            return number + 1
        if indent <= width + 3:
            return None
    return -len(lines)
