"""What reading PDF files takes, by the app and by the process that reads."""

from pathlib import Path

import pytest

from app.bench.docs_files import Texts, write_pdf
from app.bench.docs_reading import Read, grown_by, new_library, read
from engine.errors import EngineError


def test_both_processes_count() -> None:
    assert Read(num_pages=300, num_passages=900, app_s=0.5, reader_s=1.0).pages_per_s == 200


async def test_a_folder_is_read_each_time_anew(tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", [Texts().page(200)] * 3)
    async with new_library() as library:
        found = [await read(library, tmp_path) for _ in range(2)]
        (tmp_path / "a.pdf").write_bytes(b"")
        with pytest.raises(EngineError, match="no document with text"):
            await read(library, tmp_path)
    assert {(each.num_pages, each.num_passages) for each in found} == {(3, found[0].num_passages)}
    assert all(each.app_s > 0 for each in found)


def test_the_memory_is_that_of_a_process_of_its_own(tmp_path: Path) -> None:
    texts = Texts()
    write_pdf(tmp_path / "a.pdf", [texts.page() for _ in range(60)])
    grown = grown_by(tmp_path / "a.pdf")
    assert 0 <= grown.app < 100_000_000 and 0 < grown.reader < 100_000_000
    with pytest.raises(EngineError, match="could not be measured"):
        grown_by(tmp_path / "missing.pdf")
