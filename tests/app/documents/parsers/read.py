"""A file read within the test's own process: its pages and its facts."""

from app.documents.document import Facts, Page
from app.documents.parsers.parsing import parse


def read(data: bytes, name: str, password: str = "") -> tuple[list[Page], Facts]:
    *parts, last = parse(data, name, password)
    assert isinstance(last, Facts)
    pages = [part for part in parts if isinstance(part, Page)]
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))
    assert last.num_pages == len(pages)
    return pages, last


def text_of(data: bytes, name: str) -> str:
    pages, _ = read(data, name)
    return "\n\n".join(page.text for page in pages)
