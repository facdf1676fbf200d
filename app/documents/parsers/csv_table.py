"""Tables of values between commas, semicolons, tabs or bars."""

import csv
import itertools
from collections.abc import Iterable, Iterator

from app.documents.document import Facts, Page
from app.documents.encoding import lines
from app.documents.kinds import Kind
from app.documents.parsers.source import Source
from app.documents.sheets import sheet_pages
from app.documents.tables import Row

DELIMITERS = (",", ";", "\t", "|")
SAMPLE_LINES = 50
MOST_FIELD = 1_000_000


def read(source: Source) -> Iterator[Page | Facts]:
    csv.field_size_limit(MOST_FIELD)
    ahead = list(itertools.islice(lines(source.data, source.encoding), SAMPLE_LINES))
    delimiter = delimiter_of(ahead)
    # Excel names the delimiter in a line of its own.
    if ahead and ahead[0].lower().startswith("sep=") and len(ahead[0]) == 5:
        delimiter = ahead[0][4]
    written = (f"{line}\n" for line in lines(source.data, source.encoding))
    yield from sheet_pages(_rows(written, delimiter), "", 1)
    yield Facts(kind=Kind.CSV, num_pages=0)


def _rows(written: Iterable[str], delimiter: str) -> Iterator[Row]:
    for number, cells in enumerate(csv.reader(written, delimiter=delimiter), start=1):
        if cells and not (number == 1 and cells[0].lower() == "sep="):
            yield number, cells


def delimiter_of(sample: list[str]) -> str:
    """The one that divides most lines into the same number of fields, and into the most."""

    def score(delimiter: str) -> tuple[float, int]:
        counts = [
            len(cells)
            for cells in csv.reader(sample, delimiter=delimiter)
            if "".join(cells).strip()
        ]
        if not counts:
            return 0.0, 0
        usual = max(set(counts), key=counts.count)
        return (counts.count(usual) / len(counts) if usual > 1 else 0.0), usual

    return max(DELIMITERS, key=score)
