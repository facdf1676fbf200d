"""The server finds a port, says when it is ready, and ends while streams are open."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from app.web import server
from app.web.port import bind
from tests.fakes_chat import FakeServices
from tests.serving import served

ENDS_WITHIN_S = 3.0


@pytest.fixture
def app() -> FastAPI:
    """Streams that never end by themselves."""
    app = FastAPI()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"more\n"
            await asyncio.sleep(0.01)

    async def talkative() -> AsyncIterator[bytes]:
        """As Gradio does: the page hears why it is cut off, in the words of a library."""
        try:
            while True:
                yield b"more\n"
                await asyncio.sleep(0.01)
        except asyncio.CancelledError as error:
            yield f"{error} {__file__}".encode()
            raise

    @app.get("/v1/talkative")
    async def talking() -> StreamingResponse:
        return StreamingResponse(talkative())

    @app.get("/v1/endless")
    async def stream() -> StreamingResponse:
        return StreamingResponse(endless())

    return app


async def start(app: FastAPI) -> tuple["asyncio.Task[None]", str]:
    sock = bind(port=0)
    is_ready = asyncio.Event()
    serving = asyncio.create_task(server.serve(app, sock, is_ready.set))
    port = sock.getsockname()[1]
    await is_ready.wait()
    return serving, f"http://127.0.0.1:{port}"


async def test_only_the_own_names_are_answered(app: FastAPI) -> None:
    serving, url = await start(app)
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{url}/v1/none")).status_code == 404
        foreign = await client.get(f"{url}/v1/none", headers={"host": "evil.test"})
    assert foreign.status_code == 421
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


@pytest.mark.parametrize("how", ["cancel", "sigterm", "sigint"])
async def test_it_ends_while_a_stream_is_open(app: FastAPI, how: str) -> None:
    if how != "cancel" and sys.platform == "win32":
        pytest.skip("Windows sends no such signals")
    serving, url = await start(app)
    async with httpx.AsyncClient() as client, client.stream("GET", f"{url}/v1/endless") as reply:
        pieces = reply.aiter_bytes()
        assert await anext(pieces)
        if how == "cancel":
            serving.cancel()
        else:
            os.kill(os.getpid(), getattr(signal, how.upper()))
        _, pending = await asyncio.wait([serving], timeout=ENDS_WITHIN_S)
        assert not pending
        with pytest.raises(httpx.HTTPError):
            async for _ in pieces:
                pass
    assert serving.cancelled() == (how == "cancel")


async def test_a_stream_that_is_cut_off_does_not_say_where_the_program_lies(app: FastAPI) -> None:
    serving, url = await start(app)
    async with httpx.AsyncClient() as client, client.stream("GET", f"{url}/v1/talkative") as reply:
        pieces = reply.aiter_bytes()
        heard = bytearray(await anext(pieces))
        serving.cancel()
        with pytest.raises(httpx.HTTPError):
            async for piece in pieces:
                heard += piece
    assert set(bytes(heard).split()) == {b"more"}
    await asyncio.gather(serving, return_exceptions=True)


async def test_the_signals_are_given_back(app: FastAPI) -> None:
    before: Any = signal.getsignal(signal.SIGTERM)
    serving, _ = await start(app)
    assert signal.getsignal(signal.SIGTERM) is not before
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert signal.getsignal(signal.SIGTERM) is before


async def test_the_manifest_and_the_icon_that_the_page_links_are_there(tmp_path: Path) -> None:
    services = FakeServices(tmp_path)
    async with (
        served(lambda port: server.build(services, port, tmp_path / "cache")) as url,
        httpx.AsyncClient(
            base_url=url, headers={"sec-fetch-site": "same-origin"}, trust_env=False
        ) as client,
    ):
        assert 'rel="manifest" href="/manifest.json"' in (await client.get("/")).text
        told = await client.get("/manifest.json")
        assert told.status_code == 200
        assert told.headers["content-type"] == "application/manifest+json"
        manifest = told.json()
        assert (manifest["name"], manifest["start_url"]) == ("Inglenook", "/")
        (icon,) = manifest["icons"]
        shown = await client.get(icon["src"])
        assert shown.text.startswith("<svg")
        assert shown.headers["content-type"].startswith(icon["type"])
    services.database.close()
