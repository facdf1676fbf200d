"""What is said of a file whose parser finds no text, or breaks."""

from collections.abc import Iterator, Mapping

import pytest

from app.documents.document import Facts, Page, Unreadable
from app.documents.kinds import Kind
from app.documents.parsers import parsing
from app.documents.parsers.source import Source
from tests.app.documents.parsers.read import read


@pytest.mark.parametrize(
    ("num_pages", "breaks", "words"),
    [
        (0, True, "is damaged: this text could not be read at all. Open it"),
        (1200, True, "could be read up to page 1,200. Open it"),
        (1, False, "a.txt has no text."),
        (1200, False, "a.txt has no text on any of its 1,200 pages."),
    ],
)
def test_a_file_without_text_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, num_pages: int, breaks: bool, words: str
) -> None:
    def parser(source: Source) -> Iterator[Page | Facts]:
        for number in range(1, num_pages + 1):
            yield Page(number=number, label="", text="")
        if breaks:
            raise IndexError

    parsers: Mapping[Kind, parsing.Parser] = {Kind.TEXT: parser}
    monkeypatch.setattr(parsing, "PARSERS", parsers)
    with pytest.raises(Unreadable) as caught:
        read(b"words", "a.txt")
    assert words in str(caught.value)
