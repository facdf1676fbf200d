"""The door to other machines: the one place that opens connections, and writes each of them down.

Nothing goes through it unless the user asked for a search or a download. Redirects are followed
one by one, so that every host is on the list; proxies are those of the environment.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from app.models.connections import Connections
from engine.errors import DownloadEnded, DownloadError

AGENT = "inglenook"
CONNECT_S = 15.0
MOST_REDIRECTS = 6
LARGEST_ANSWER = 32 * 2**20
"""Of what is read whole."""
_ERRNO = re.compile(r"\[Errno -?\d+\] ?")


class Outside:
    """Owned by the event loop. `stall_s`: how long a server may say nothing."""

    def __init__(self, connections: Connections, stall_s: float = 30.0) -> None:
        self._connections = connections
        self._stall_s = stall_s

    @asynccontextmanager
    async def get(
        self, url: str, why: str, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator["Answer"]:
        """The answer, its body still to be read. Raises DownloadError, also inside the block for
        what goes wrong while the body is read."""
        sent = {"User-Agent": AGENT, "Accept-Encoding": "identity", **(headers or {})}
        timeout = httpx.Timeout(self._stall_s, connect=min(CONNECT_S, self._stall_s))
        first: Mapping[str, str] = {}
        with _as_sentences(url):
            for _ in range(MOST_REDIRECTS):
                _check_address(url)
                self._connections.note(_host_of(url), why)
                async with (
                    httpx.AsyncClient(timeout=timeout, trust_env=not _is_loopback(url)) as client,
                    client.stream("GET", url, headers=sent) as response,
                ):
                    if not response.has_redirect_location:
                        yield Answer(response, {**response.headers, **first})
                        return
                    first = {**response.headers, **first}
                    target = _target(url, response.headers["location"])
                if _is_encrypted(url) and not _is_encrypted(target):
                    raise DownloadEnded(
                        f"{_host_of(url)} wants to hand on to {_host_of(target)} without"
                        " encryption, which is not followed: try again later."
                    )
                url = target
        raise DownloadEnded(
            f"{_host_of(url)} hands on more than {MOST_REDIRECTS} times: try again later."
        )

    async def get_json(self, url: str, why: str) -> Any:
        """The object at an address. Raises DownloadError."""
        body = bytearray()
        async with self.get(url, why) as answer:
            if answer.status != 200:
                raise refusal(answer.status, url)
            async for piece in answer.pieces():
                body += piece
                if len(body) > LARGEST_ANSWER:
                    raise DownloadError(
                        f"{_host_of(url)} answered with more than {LARGEST_ANSWER:,} bytes: try"
                        " again later, or search for something else."
                    )
        try:
            return httpx.Response(200, content=bytes(body)).json()
        except (ValueError, RecursionError) as error:
            raise DownloadError(
                f"{_host_of(url)} answered with something else than JSON: is a login page of your"
                " network in the way? Open a browser and look."
            ) from error


class Answer:
    """What a server said. `headers`: also those of what handed on to it, which come first."""

    def __init__(self, response: httpx.Response, headers: Mapping[str, str]) -> None:
        self._response = response
        self.status = response.status_code
        self.own_headers: Mapping[str, str] = {**response.headers}
        self.headers = {name.lower(): value for name, value in headers.items()}

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes, as it was sent."""
        async for piece in self._response.aiter_raw():
            yield piece


class _as_sentences:
    """Turns what the library raises into one DownloadError."""

    def __init__(self, url: str) -> None:
        self._host = _host_of(url)

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        host, reason = self._host, _ERRNO.sub("", str(error))
        match error:
            case httpx.TimeoutException():
                words = f"{host} did not answer in time"
            case httpx.ProxyError():
                words = f"{host} cannot be reached through the proxy of the environment ({reason})"
            case httpx.ConnectError() if "certificate" in reason.lower():
                words = f"{host} shows a certificate that cannot be trusted"
            case httpx.ConnectError():
                words = f"There is no connection to {host}"
            case httpx.RemoteProtocolError() | httpx.ReadError() | httpx.DecodingError():
                words = f"{host} broke off the connection"
            case httpx.HTTPError() | httpx.InvalidURL() | httpx.StreamError():
                words = f"{host} cannot be spoken to ({reason})"
            case _:
                return
        raise DownloadError(
            f"{words}: check the connection to the network and try again."
        ) from error


def refusal(status: int, url: str) -> DownloadError:
    """The sentence for an answer that is not what was asked for."""
    host = _host_of(url)
    if status in (401, 403):
        return DownloadEnded(
            f"{host} gives this only to those who are known there ({status}): choose a model that"
            " anybody may have."
        )
    if status == 404:
        return DownloadEnded(f"{host} has nothing under this name (404): search for another.")
    if status == 429:
        return DownloadEnded(f"{host} has had enough questions for now (429): wait a few minutes.")
    words = f"{host} answered with an error ({status}): try again later."
    return DownloadError(words) if status >= 500 else DownloadEnded(words)


def _target(url: str, location: str) -> str:
    """Where an answer hands on to. Raises DownloadEnded."""
    try:
        return urljoin(url, location)
    except ValueError as error:
        raise DownloadEnded(
            f"{_host_of(url)} hands on to what is no address: try again later."
        ) from error


def _check_address(url: str) -> None:
    if not _is_encrypted(url) and not _is_loopback(url):
        raise DownloadEnded(
            f"{_host_of(url)} is not spoken to without encryption: use an address that begins with"
            " https."
        )


def _is_encrypted(url: str) -> bool:
    try:
        return urlsplit(url).scheme == "https"
    except ValueError:
        return False


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or "the address"
    except ValueError:
        return "the address"


def _is_loopback(url: str) -> bool:
    """Such as a test's own server, which no proxy could reach."""
    host = _host_of(url)
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
