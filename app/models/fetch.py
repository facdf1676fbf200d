"""One file brought from another machine: gone on with where it broke off, and checked at its end.

size of the part = 0   the whole is asked for
size of the part > 0   the rest, if the file is still the one it was (If-Range); a server that
                       sends the whole instead begins the part anew
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.models.hub import RemoteFile
from app.models.outside import Answer, Outside, refusal
from app.models.part_file import PartFile
from engine.backends.llama_cpp.gguf_header import BrokenHeader, read_header
from engine.errors import DownloadEnded, DownloadError

MOST_FAILURES = 6
MOST_DIGITS = 18
_FLUSH_BYTES = 2**20
_RANGE = re.compile(r"bytes (\d{1,18})-\d+/(\d{1,18}|\*)")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """How a file is brought. `on_size` hears how much is there, `on_etag` by which name the server
    knows this version of it. `wait_s`: before the second trial; it doubles with each."""

    outside: Outside
    file: RemoteFile
    part: PartFile
    why: str
    on_size: Callable[[int], None]
    on_etag: Callable[[str], None]
    wait_s: float = 1.0

    async def run(self, etag: str) -> None:
        """Bring all of it. What has come stays when this raises DownloadError or is cancelled; only
        a file with the wrong content is thrown away."""
        await settled(self.part.open)
        if self.file.num_bytes and self.part.size > self.file.num_bytes:
            await settled(self.part.restart)
        self.on_size(self.part.size)
        attempt = _Attempt(self, etag)
        failures = 0
        while not await attempt.go():
            if attempt.has_advanced:
                failures = 0
            failures += 1
            if failures >= MOST_FAILURES:
                assert attempt.failure is not None
                raise attempt.failure
            await asyncio.sleep(min(30.0, self.wait_s * 2 ** (failures - 1)))
        await self._check(attempt.sha256)

    async def _check(self, wanted: str) -> None:
        if not wanted:
            await self._check_header()
        elif self.part.sha256 != wanted:
            found = self.part.sha256
            await settled(self.part.restart)
            raise DownloadEnded(
                f"{self.file.name} came with the wrong content (its SHA-256 begins with"
                f" {found[:12]}, that of the right one with {wanted[:12]}) and was thrown away:"
                " download it again."
            )

    async def _check_header(self) -> None:
        """Without a sum it must at least be a model file, and no page about an error."""

        def check() -> None:
            header, size = read_header(self.part.path), self.part.size
            if size < header.needed_bytes:
                raise BrokenHeader(f"it ends at {size:,} bytes of {header.needed_bytes:,}")

        try:
            await settled(check)
        except (BrokenHeader, FileNotFoundError) as error:
            reason = error if isinstance(error, BrokenHeader) else "it is empty"
            await settled(self.part.restart)
            raise DownloadEnded(
                f"{self.file.name} came without a sum to check it by, and is no whole model file"
                f" ({reason}): it was thrown away; download it again, or choose another one."
            ) from error


class _Attempt:
    """Connections to one file, one after the other."""

    def __init__(self, fetch: Fetch, etag: str) -> None:
        self._fetch = fetch
        self._part = fetch.part
        self._etag = etag
        self._total = fetch.file.num_bytes
        self.sha256 = fetch.file.sha256
        self.has_advanced = False
        self.failure: DownloadError | None = None

    async def go(self) -> bool:
        """Whether all is there now. Raises DownloadEnded where another trial would not help."""
        before = self._part.size
        if self._total and before == self._total:
            return True
        try:
            is_whole = await self._connect()
            self.failure = DownloadError(
                f"{self._fetch.file.name} broke off at {self._part.size:,} of {self._total:,} bytes"
                " again and again: go on with it later."
            )
        except DownloadEnded:
            raise
        except DownloadError as error:
            is_whole, self.failure = False, error
        self.has_advanced = self._part.size > before
        return is_whole

    async def _connect(self) -> bool:
        headers = {}
        if self._part.size:
            headers["Range"] = f"bytes={self._part.size}-"
            if self._etag and not self._etag.startswith("W/"):
                headers["If-Range"] = self._etag
        async with self._fetch.outside.get(
            self._fetch.file.url, self._fetch.why, headers
        ) as answer:
            if not await self._begin(answer):
                return False
            await self._take(answer)
        # Without any figure the end of the answer is the end of the file.
        return self._part.size == self._total if self._total else True

    async def _begin(self, answer: Answer) -> bool:
        """Whether the body goes on from the end of the part."""
        headers = answer.own_headers
        if answer.status == 416:
            # It ends before our part does: another file, or a server that knows no better.
            await settled(self._part.restart)
            self._etag = ""
            return False
        if answer.status not in (200, 206):
            raise refusal(answer.status, self._fetch.file.url)
        if headers.get("content-encoding", "identity") != "identity":
            raise self._lie(f"packs the file ({headers['content-encoding']}) unasked")
        if answer.status == 206:
            found = _RANGE.fullmatch(headers.get("content-range", ""))
            if found is None or int(found[1]) != self._part.size:
                raise self._lie("sends another piece than the one that was asked for")
            told = 0 if found[2] == "*" else int(found[2])
        else:
            told = _number(headers, "content-length")
            if self._part.size:
                await settled(self._part.restart)
                self._fetch.on_size(0)
        self._check_promises(told, answer)
        self._total = self._total or told
        self._etag = headers.get("etag", "")
        self._fetch.on_etag(self._etag)
        return True

    def _check_promises(self, told: int, answer: Answer) -> None:
        """What the server says of the file must be what the catalogue of files said."""
        for size in (told, _number(answer.headers, "x-linked-size")):
            if size and self._total and size != self._total:
                raise self._lie(f"has {size:,} bytes where {self._total:,} were announced")
        linked = answer.headers.get("x-linked-etag", "").strip('"').lower()
        if _SHA256.fullmatch(linked):
            self.sha256 = self.sha256 or linked
            if linked != self.sha256:
                raise self._lie("has another version by now")

    async def _take(self, answer: Answer) -> None:
        kept = bytearray()
        try:
            async for piece in answer.pieces():
                kept += piece
                if self._total and self._part.size + len(kept) > self._total:
                    kept.clear()
                    await settled(self._part.restart)
                    raise self._lie(f"sends more than the {self._total:,} bytes it announced")
                if len(kept) >= _FLUSH_BYTES:
                    piece = bytes(kept)
                    kept.clear()
                    await settled(self._part.write, piece)
                    self._fetch.on_size(self._part.size)
        finally:
            # Also when it broke off or was paused: what has come need not come again.
            if kept:
                self._part.write(bytes(kept))
                self._fetch.on_size(self._part.size)

    def _lie(self, what: str) -> DownloadEnded:
        name = self._fetch.file.name
        return DownloadEnded(f"The server of {name} {what}: try again later, or another model.")


async def settled(call: Callable[..., object], *arguments: bytes) -> None:
    """Do it in a thread, and when cancelled wait for its end: nobody else may touch the part
    before."""
    working = asyncio.ensure_future(asyncio.to_thread(call, *arguments))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise


def _number(headers: Mapping[str, str], name: str) -> int:
    text = headers.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else 0
