"""An app on a real port of this machine, for as long as a test needs it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from app.web import server
from app.web.port import bind


@asynccontextmanager
async def served(build: Callable[[int], ASGIApp]) -> AsyncIterator[str]:
    """The address of the app that is built for the port; it is ended with the block."""
    sock = bind()
    port = sock.getsockname()[1]
    is_ready = asyncio.Event()
    serving = asyncio.create_task(server.serve(build(port), sock, is_ready.set))
    await is_ready.wait()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        serving.cancel()
        await asyncio.wait([serving])
