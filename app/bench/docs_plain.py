"""A library of plain texts that are read in this process: for what is measured of the library and
not of who reads."""

import hashlib
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.documents.document import Facts, Page
from app.documents.embedding.embeddings import NO_EMBEDDING, Embedding
from app.documents.library import Library

PAGE_END = "\f"
LIBRARY_NAME = "documents.sqlite3"


class PlainReader:
    """Reads files that a benchmark has written; a form feed ends a page."""

    async def read(
        self, path: Path, *, password: str = "", root: Path | None = None
    ) -> AsyncGenerator[Page | Facts, None]:
        data = path.read_bytes()
        pages = data.decode().split(PAGE_END)
        for number, text in enumerate(pages, start=1):
            yield Page(number=number, label=str(number), text=text)
        yield Facts(kind="txt", num_pages=len(pages), sha256=hashlib.sha256(data).hexdigest())

    async def close(self) -> None:
        """It has nothing to close."""


@asynccontextmanager
async def plain_library(
    embedding: Embedding = NO_EMBEDDING,
) -> AsyncIterator[tuple[Library, Path]]:
    """An empty one, and an empty folder beside it."""
    with tempfile.TemporaryDirectory(prefix="inglenook-") as name:
        room = Path(name).resolve()
        folder = room / "papers"
        folder.mkdir()
        library = Library(room / LIBRARY_NAME, PlainReader(), embedding=embedding)
        try:
            await library.prepare()
            yield library, folder
        finally:
            await library.close()
