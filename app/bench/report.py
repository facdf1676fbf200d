"""What a benchmark or an evaluation prints: a table, perhaps bars, at last one JSON object."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]
BAR_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Report:
    """`columns` are the fields of `rows` that the table shows; `bars` name a field to draw."""

    name: str
    machine: Mapping[str, Any]
    rows: Sequence[Row]
    columns: Sequence[str]
    bars: tuple[str, str] | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    kind: str = "bench"
    """Or "eval"."""
    totals: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> str:
        head = {self.kind: self.name, **self.totals, "machine": self.machine}
        return json.dumps({**head, "rows": self.rows}, ensure_ascii=False)

    def text(self) -> str:
        """All of it, the JSON object last."""
        parts = [machine_line(self.machine), "", table(self.rows, self.columns)]
        if self.bars is not None:
            parts += ["", bars(self.rows, *self.bars)]
        return "\n".join([*parts, "", *self.notes, self.as_json()])


def machine_line(machine: Mapping[str, Any]) -> str:
    return " · ".join(f"{name} {cell(value)}" for name, value in machine.items())


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Words to the left, numbers to the right."""
    cells = [[cell(row.get(column)) for column in columns] for row in rows]
    titles = [column.replace("_", " ") for column in columns]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    numeric = [all(_is_number(row.get(column)) for row in rows) for column in columns]
    lines = [_line(titles, widths, numeric), "  ".join("-" * width for width in widths)]
    return "\n".join([*lines, *(_line(row, widths, numeric) for row in cells)])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | None) and not isinstance(value, bool)


def _line(cells: Iterable[str], widths: Iterable[int], numeric: Iterable[bool]) -> str:
    parts = (
        text.rjust(width) if is_number else text.ljust(width)
        for text, width, is_number in zip(cells, widths, numeric, strict=True)
    )
    return "  ".join(parts).rstrip()


def bars(rows: Sequence[Row], label: str, value: str) -> str:
    """One bar a row, the longest as wide as the picture."""
    numbers = [float(row.get(value) or 0.0) for row in rows]
    longest = max([*numbers, 0.0]) or 1.0
    width = max((len(str(row.get(label, ""))) for row in rows), default=0)
    return "\n".join(
        f"{row.get(label, '')!s:<{width}} {'#' * round(BAR_WIDTH * number / longest)} {number:.3g}"
        for row, number in zip(rows, numbers, strict=True)
    )


def cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "NO"
        case float():
            return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
        case int():
            return f"{value:,}"
        case list() | tuple():
            return "/".join(cell(one) for one in value)
    return str(value)
