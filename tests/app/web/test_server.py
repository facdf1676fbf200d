"""The server finds a port, says when it is ready, and ends while streams are open."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from app.web import server
from app.web.port import bind

ENDS_WITHIN_S = 3.0


@pytest.fixture
def app() -> FastAPI:
    """Streams that never end by themselves."""
    app = FastAPI()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"more\n"
            await asyncio.sleep(0.01)

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


async def test_the_signals_are_given_back(app: FastAPI) -> None:
    before: Any = signal.getsignal(signal.SIGTERM)
    serving, _ = await start(app)
    assert signal.getsignal(signal.SIGTERM) is not before
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert signal.getsignal(signal.SIGTERM) is before
