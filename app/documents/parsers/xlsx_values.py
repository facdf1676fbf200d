"""What a cell of a workbook shows: its number by its format, a date by the calendar of the file."""

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto

from app.documents.markup import Element, attribute, child, local

TEXT_IN_FORMAT = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]')
EPOCHS = (datetime.datetime(1899, 12, 30), datetime.datetime(1904, 1, 1))
LAST_DAY = 2_958_466
"""The end of the year 9999, in days from the first epoch."""


class Form(Enum):
    """What kind of number a format is for."""

    PLAIN = auto()
    PERCENT = auto()
    DATE = auto()
    TIME = auto()
    MOMENT = auto()
    DURATION = auto()


# Those that every file has without writing them down.
BUILT_IN: Mapping[int, Form] = {
    **dict.fromkeys((9, 10), Form.PERCENT),
    **dict.fromkeys((*range(14, 18), *range(27, 37), *range(50, 59)), Form.DATE),
    **dict.fromkeys(range(18, 22), Form.TIME),
    22: Form.MOMENT,
    **dict.fromkeys((45, 47), Form.TIME),
    46: Form.DURATION,
}


def forms_of(styles: Element | None) -> Sequence[Form]:
    """For each style of a cell, by its number."""
    custom = {
        attribute(each, "numFmtId"): form_of(attribute(each, "formatCode"))
        for each in _all(child(styles, "numFmts"))
    }
    numbers = (attribute(each, "numFmtId") for each in _all(child(styles, "cellXfs")))
    return [
        custom.get(number) or BUILT_IN.get(int(number) if number.isdecimal() else 0, Form.PLAIN)
        for number in numbers
    ]


def form_of(code: str) -> Form:
    """Of a format such as "0.0%" or "dd.mm.yyyy hh:mm"."""
    signs = TEXT_IN_FORMAT.sub("", code.split(";")[0]).lower()
    if re.search(r"\[[hms]+\]", signs):
        return Form.DURATION
    has_day, has_hour = bool(re.search("[dy]", signs)), bool(re.search("[hs]", signs))
    if has_day or has_hour:
        return Form.MOMENT if has_day and has_hour else Form.DATE if has_day else Form.TIME
    if re.fullmatch(r"[m\s./-]+", signs):
        return Form.DATE
    return Form.PERCENT if "%" in signs else Form.PLAIN


def shown(value: str, form: Form, is_1904: bool) -> str:
    """A number as it is written in the file, about as the sheet shows it."""
    if not value:
        return ""
    try:
        number = float(value)
    except ValueError:
        return value
    if not math.isfinite(number):
        return value
    if form is Form.PERCENT:
        return f"{number * 100:.10g}%"
    if form is Form.DURATION:
        minutes = round(number * 1440)
        return f"{minutes // 60}:{minutes % 60:02d}"
    if form is not Form.PLAIN and 0 <= number < LAST_DAY:
        # Parts of a day are rounded in the file: 9:30 is stored a trifle earlier.
        seconds = datetime.timedelta(seconds=round(number * 86_400))
        moment = EPOCHS[is_1904] + seconds
        if form is Form.TIME:
            return moment.time().isoformat("minutes")
        is_day = form is Form.DATE or not seconds % datetime.timedelta(days=1)
        return moment.date().isoformat() if is_day else moment.isoformat(" ", "minutes")
    return f"{number:.15g}"


def _all(element: Element | None) -> list[Element]:
    return [] if element is None else [each for each in element if local(each)]
