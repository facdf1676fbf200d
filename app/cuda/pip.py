"""pip in an environment: what it would bring, and bringing it; every line is heard as it comes.

Its own settings hold (a mirror of a company, a proxy): they are read and never written.
"""

import asyncio
import json
import os
import re
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engine.errors import InstallationFailed

SOURCES = re.compile(r"^[^=]*\.(index-url|extra-index-url)='(?P<urls>.*)'$")
NO_INDEX = re.compile(r"^[^=]*\.no-index='(1|true|yes|on)'$", re.IGNORECASE)
DEFAULT = re.compile(r"\(default\s+(?P<url>https?://[^)\s]+)\)")
TELLING = ("Downloading ", "Building ", "Installing ")

Hear = Callable[[str], None]


class Pip:
    """That of the environment whose Python this is. `cache`: where it keeps what came whole, so
    that an installation that broke off goes on; None: where it always does."""

    def __init__(self, python: Path, cache: Path | None, work: Path) -> None:
        """`work`: where it puts what it is at; the system's own place may be small."""
        self._python = python
        self._work = work
        self._cache = [] if cache is None else ["--cache-dir", str(cache)]

    async def run(self, *arguments: str, hear: Hear = lambda line: None) -> str:
        """What it wrote. Raises InstallationFailed with its last word; cancelled, pip ends too."""
        common = ["--disable-pip-version-check", "--no-input", "--no-color", *self._cache]
        return await run(
            [str(self._python), "-I", "-m", "pip", *common, *arguments],
            cwd=self._python.parent,
            hear=hear,
            work=self._work,
        )

    async def index_hosts(self) -> list[str]:
        """Whom it would ask, by its settings; none where it may ask nobody."""
        settings = (await self.run("config", "list")).splitlines()
        if any(NO_INDEX.match(line) for line in settings):
            return []
        urls: list[str] = []
        for line in settings:
            if found := SOURCES.match(line):
                urls += found["urls"].split()
        if not any(".index-url=" in line for line in settings):
            # Its help names the one that it takes without any setting.
            words = " ".join((await self.run("install", "--help")).split())
            urls += [found["url"] for found in DEFAULT.finditer(words)]
        return hosts_of(urls)

    async def report(self, *arguments: str, into: Path) -> list[dict[str, Any]]:
        """What it would install and from where, without installing it."""
        file = into / "report.json"
        await self.run("install", "--dry-run", "--report", str(file), "--quiet", *arguments)
        try:
            found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["install"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InstallationFailed(
                "pip does not say what it would install: install a newer Python, and try again."
            ) from error
        finally:
            file.unlink(missing_ok=True)
        return found


async def run(
    command: Sequence[str],
    cwd: Path,
    hear: Hear = lambda line: None,
    work: Path | None = None,
) -> str:
    """What a program wrote. Raises InstallationFailed."""
    places = {} if work is None else dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(work))
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env={**os.environ, **places},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        raise InstallationFailed(
            f"{command[0]} cannot be started ({error.strerror}): install Python anew."
        ) from error
    written: deque[str] = deque(maxlen=2000)
    assert process.stdout is not None
    try:
        # Read in pieces: a line may be longer than a stream's limit.
        async for line in _lines(process.stdout):
            written.append(line)
            if line.startswith(TELLING):
                hear(_shortened(line))
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code:
        raise InstallationFailed(_sentence(command, code, written))
    return "\n".join(written)


async def _lines(stream: asyncio.StreamReader) -> Any:
    rest = ""
    while piece := await stream.read(65536):
        *lines, rest = (rest + piece.decode("utf-8", "replace")).split("\n")
        for line in lines:
            yield line.strip()
    if rest:
        yield rest.strip()


def _shortened(line: str) -> str:
    """Without addresses and long lists."""
    return re.sub(r"\s*@ \S+", "", line.partition(" (from ")[0]).partition(": ")[0]


def _sentence(command: Sequence[str], code: int, written: Sequence[str]) -> str:
    errors = [line.removeprefix("ERROR: ") for line in written if line.startswith("ERROR: ")]
    last = (errors or [line for line in written if line])[-1:]
    what = "pip" if "pip" in command else Path(command[0]).name
    words = f': "{last[0][:300]}"' if last else ""
    return (
        f"{what} ended with {code}{words}. Nothing of it is used; see that the network and the disk"
        " are there, and try again."
    )


def hosts_of(urls: Sequence[str]) -> list[str]:
    """Each once, in their order; a place on this machine is none."""
    found = [urlsplit(url).hostname for url in urls if not url.startswith("file:")]
    return list(dict.fromkeys(host for host in found if host))
