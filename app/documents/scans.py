"""Files with the text of their pictures: what the reading process finds no text on is read by OCR,
in a process of its own.

    reader   all pages, some of them without text ---.
    looker   the pictures of those, one by one       +--> pages in their order, then the Facts

A page that ends that process, or takes too long, stays without text, and the others are read by a
new one.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from app.amounts import counted
from app.documents.command import OCR_COMMAND
from app.documents.document import Facts, FileState, Page, PageFlag, Unreadable
from app.documents.kinds import DRAWN
from app.documents.ocr import is_installed
from app.documents.reading import Limits, Reader
from app.documents.rest import Rest
from app.launch.child import own_command

MOST_FAILED = 3
"""One after the other: then the file is taken for one that cannot be read by OCR."""
REST_S = 30.0
"""How long the process with the models is kept for the next file."""
LIMITS = Limits(
    memory_bytes=1_600_000_000,
    seconds=45.0,
    seconds_a_page=0.0,
    grown_bytes=1_200_000_000,
)
"""Of one page, which takes 3 to 11 seconds and 0.8 GB."""


class Scans:
    """Owned by the event loop. Reads as `reader` does, which stays its giver's to close."""

    def __init__(
        self,
        reader: Reader,
        looker: Reader | None = None,
        *,
        has_ocr: Callable[[], bool] = is_installed,
        rest_s: float = REST_S,
    ) -> None:
        self._reader = reader
        self._looker = looker or Reader((*own_command(), OCR_COMMAND), LIMITS)
        self._has_ocr = has_ocr
        self._rest = Rest(self._looker.close, rest_s)

    async def read(
        self, path: Path, *, password: str = "", root: Path | None = None
    ) -> AsyncGenerator[Page | Facts, None]:
        """As `Reader.read`, with the pages that OCR has read in the places of those without text.

        Raises Unreadable.
        """
        facts: Facts | None = None
        # From the first page without text on: they come in their order.
        held: list[Page] = []
        has_begun = False
        has_ocr = self._has_ocr()
        async with aclosing(self._reader.read(path, password=password, root=root)) as parts:
            async for part in parts:
                if isinstance(part, Facts):
                    facts = part
                    if not has_begun:
                        yield part
                    continue
                has_begun = True
                can_be_read = has_ocr and facts is not None and facts.kind in DRAWN
                if held or part.is_unread and can_be_read:
                    held.append(part)
                else:
                    yield part
        if facts is None:
            return
        if not held:
            yield facts
            return
        async for part in self._with_ocr(path, held, facts, password, root):
            yield part

    async def _with_ocr(
        self, path: Path, held: Sequence[Page], facts: Facts, password: str, root: Path | None
    ) -> AsyncGenerator[Page | Facts, None]:
        look = _Look(deque(page.number for page in held if page.is_unread))
        waiting = deque(held)
        await self._rest.wake()
        try:
            async with aclosing(self._looked(look, path, password, root)) as found:
                async for read in found:
                    while waiting and waiting[0].number < read.number:
                        yield waiting.popleft()
                    yield _merged(waiting.popleft(), read)
        finally:
            self._rest.begin()
        for page in waiting:
            yield page
        sha256 = facts.sha256 if look.sha256 in ("", facts.sha256) else ""
        notice = " ".join(each for each in (facts.notice, look.sentence()) if each)
        yield replace(facts, notice=notice, sha256=sha256)

    async def _looked(
        self, look: "_Look", path: Path, password: str, root: Path | None
    ) -> AsyncGenerator[Page, None]:
        while look.left and look.num_in_a_row < MOST_FAILED:
            numbers = tuple(look.left)
            try:
                asked = self._looker.look(path, numbers, password=password, root=root)
                async with aclosing(asked) as parts:
                    async for part in parts:
                        if isinstance(part, Facts):
                            look.sha256 = part.sha256
                        else:
                            look.note(part)
                            yield part
                return
            except Unreadable as problem:
                if problem.state is not FileState.FAILED or not look.left:
                    return
                # The one that it was at. It stays as it was.
                look.note(Page(number=look.left[0], label="", text=""))

    def can_read(self, facts: Facts, pages: Sequence[Page]) -> bool:
        """Whether OCR would read more of a file than these pages have."""
        return facts.kind in DRAWN and any(page.is_unread for page in pages) and self._has_ocr()

    async def close(self) -> None:
        await self._rest.wake()
        await self._looker.close()


class _Look:
    """How far the pictures of one file were read. Owned by `Scans`."""

    def __init__(self, left: deque[int]) -> None:
        self.left = left
        self.num_wanted = len(left)
        self.num_with_text = 0
        self.num_looked_at = 0
        self.num_in_a_row = 0
        self.sha256 = ""

    def note(self, page: Page) -> None:
        self.left.popleft()
        is_read = PageFlag.OCR in page.flags
        self.num_looked_at += is_read
        self.num_with_text += bool(page.text)
        self.num_in_a_row = 0 if is_read else self.num_in_a_row + 1

    def sentence(self) -> str:
        """What a person should know of it."""
        said = []
        if self.num_with_text:
            were = "was" if self.num_with_text == 1 else "were"
            said.append(f"{counted(self.num_with_text, 'page')} {were} read by OCR.")
        if num_failed := self.num_wanted - self.num_looked_at:
            said.append(f"OCR could not read {counted(num_failed, 'page')}.")
        return " ".join(said)


def _merged(page: Page, read: Page) -> Page:
    """A page with what OCR has read of it, where that is something."""
    if PageFlag.OCR not in read.flags:
        return page
    if not read.text:
        return replace(page, flags=page.flags | {PageFlag.OCR})
    kept = page.flags & {PageFlag.HIDDEN_LEFT_OUT}
    # Headings stand in the text that was there before.
    return replace(
        page, text=read.text, headings=(), flags=kept | {PageFlag.OCR}, pieces=read.pieces
    )
