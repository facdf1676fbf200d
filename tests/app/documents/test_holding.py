"""A file of the library that cannot be used is told, with what is lost with it, and kept."""

from pathlib import Path

import pytest

from app.documents.library import Library
from engine.errors import HistoryError
from tests.fakes_documents import FakeReader


def test_a_damaged_library_says_what_is_made_anew_and_what_is_lost(room: Path) -> None:
    path = room / "documents.sqlite3"
    path.write_bytes(b"no database" * 100)
    with pytest.raises(HistoryError) as caught:
        Library(path, FakeReader())
    said = str(caught.value)
    assert "document library" in said and "made anew from your files" in said
    assert "which collections they were in is lost" in said
    assert path.read_bytes() == b"no database" * 100
