"""A reader of plain texts that can be told what to meet, and that counts what it reads."""

import asyncio
from collections.abc import AsyncGenerator
from hashlib import sha256
from pathlib import Path

from app.documents.document import Facts, FileState, Heading, Page, Unreadable


class FakeReader:
    """Pages are divided by form feeds; a line that begins with "# " is a heading.

    A file that begins with DAMAGED, UNSUPPORTED, FAILED or LOCKED:password is what it says. `gate`
    stops it before every page until it is set, `lock` where a password is missing; each page takes
    `page_s`.
    """

    def __init__(self, page_s: float = 0.0) -> None:
        self.page_s = page_s
        self.read_paths: list[str] = []
        self.passwords: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.lock = asyncio.Event()
        self.lock.set()
        self.is_closed = False

    async def read(
        self, path: Path, *, password: str = "", root: Path | None = None
    ) -> AsyncGenerator[Page | Facts, None]:
        self.read_paths.append(str(path))
        self.passwords.append(password)
        content = path.read_bytes()
        text = content.decode(errors="replace")
        if not text:
            raise Unreadable(FileState.EMPTY, "It has no bytes.")
        if text.startswith("DAMAGED"):
            raise Unreadable(FileState.DAMAGED, "It is damaged: bring it again.")
        if text.startswith("UNSUPPORTED"):
            raise Unreadable(FileState.UNSUPPORTED, "This kind of file is not read.")
        if text.startswith("FAILED"):
            raise Unreadable(FileState.FAILED, "It could not be read.")
        if text.startswith("LOCKED:"):
            first, _, text = text.partition("\n")
            if first.removeprefix("LOCKED:") != password:
                await self.lock.wait()
                raise Unreadable(FileState.NEEDS_PASSWORD, "It needs its password.")
        pages = text.split("\f")
        yield Facts(kind="txt", num_pages=len(pages))
        for number, part in enumerate(pages, start=1):
            await self.gate.wait()
            await asyncio.sleep(self.page_s)
            yield Page(number=number, label=str(number), text=part, headings=_headings(part))
        yield Facts(
            kind="txt", num_pages=len(pages), title=path.stem, sha256=sha256(content).hexdigest()
        )

    async def close(self) -> None:
        self.is_closed = True


def _headings(text: str) -> tuple[Heading, ...]:
    found = []
    start = 0
    for line in text.split("\n"):
        if line.startswith("# "):
            found.append(Heading(start=start, path=(line[2:],)))
        start += len(line) + 1
    return tuple(found)
