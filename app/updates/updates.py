"""Whether there is a newer version: one question to where versions are published, on request.

The address stands in the package's own description, `[project.urls] Releases` of pyproject.toml;
under it lie the archives and `latest.json`. Nothing is downloaded or installed.
"""

import asyncio
import json
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, metadata
from urllib.parse import urlsplit

from packaging.version import Version

from app.amounts import bytes_in_words, duration
from app.models.connections import Connections
from app.models.outside import Outside
from app.updates.comparison import Comparison, is_from_deb, this_system
from app.updates.latest import FILE, latest_of
from app.version import VERSION
from engine.errors import DownloadEnded, DownloadError

WHY = "check for updates"
LABEL = "releases"
MOST_BYTES = 1_000_000
STALL_S = 10.0
MOST_S = 30.0


class Updates:
    """Asks only when it is called. Owned by the event loop. `stall_s`: how long a server may say
    nothing, `most_s`: how long it may take."""

    def __init__(
        self,
        connections: Connections,
        published: Callable[[], str] = lambda: published_at(),
        stall_s: float = STALL_S,
        most_s: float = MOST_S,
    ) -> None:
        self._outside = Outside(connections, stall_s)
        self._published = published
        self._most_s = most_s

    async def look(self, source: str = "") -> Comparison:
        """Ask once, at the address `source` or else where this build says that versions are
        published. Raises DownloadError."""
        address = (source or self._published()).strip().removesuffix(FILE).rstrip("/")
        if not address:
            raise DownloadEnded(
                f"This Inglenook {VERSION} does not know where new versions are published: name the"
                " address with `inglenook updates --from URL`."
            )
        body = await self._ask(f"{address}/{FILE}")
        host = _host_of(address)
        try:
            values = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise DownloadError(
                f"{host} answered with something else than JSON: see that {address} is where"
                " versions are published, and that no login page of your network is in the way."
            ) from error
        try:
            latest = latest_of(values)
        except ValueError as error:
            raise DownloadEnded(
                f"What {host} says of its newest version cannot be understood ({error}): see that"
                f" {address} is where versions are published, or look there with a browser."
            ) from error
        return Comparison(
            own=Version(VERSION),
            latest=latest,
            address=address,
            system=this_system(),
            is_debian=is_from_deb(),
        )

    async def _ask(self, url: str) -> bytes:
        try:
            async with asyncio.timeout(self._most_s):
                return await self._read(url)
        except TimeoutError as error:
            raise DownloadError(
                f"{_host_of(url)} had not sent all of {FILE} after {duration(self._most_s)}: try"
                " again later."
            ) from error

    async def _read(self, url: str) -> bytes:
        body = bytearray()
        async with self._outside.get(url, WHY) as answer:
            if answer.status != 200:
                raise DownloadEnded(
                    f"{_host_of(url)} has nothing to read at {url} ({answer.status}): see that this"
                    " is where versions are published, or try again later."
                )
            async for piece in answer.pieces():
                body += piece
                if len(body) > MOST_BYTES:
                    raise DownloadEnded(
                        f"{_host_of(url)} sends more than {bytes_in_words(MOST_BYTES)} for {FILE}:"
                        " see that this is where versions are published."
                    )
        return bytes(body)


def published_at() -> str:
    """What this build says of it; empty: nothing."""
    try:
        told = metadata("inglenook").get_all("Project-URL") or ()
    except PackageNotFoundError:
        return ""
    for each in told:
        label, _, address = each.partition(",")
        if label.strip().lower() == LABEL:
            return str(address.strip())
    return ""


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or "The address"
    except ValueError:
        return "The address"
