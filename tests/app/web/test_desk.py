"""The doors of a desk: who may act, what is no request, and how a refusal is said."""

import errno
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Response

from app.web.desk import Action, add_doors
from engine.errors import UsageError

ORIGIN = {"Origin": "http://desk"}


class FakeDesk:
    """Takes what is dropped, and does a few things."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, int, bytes]] = []

    def actions(self) -> dict[str, Action]:
        return {"echo": self.echo, "draw": self.draw, "refuse": self.refuse, "fail": self.fail}

    async def echo(self, given: dict[str, Any]) -> dict[str, Any]:
        return given

    async def draw(self, given: dict[str, Any]) -> Response:
        return Response(b"drawn", media_type="image/png")

    async def refuse(self, given: dict[str, Any]) -> None:
        raise UsageError("There is no file \u202efdp.exe.")

    async def fail(self, given: dict[str, Any]) -> None:
        raise OSError(errno.ENAMETOOLONG, "File name too long")

    async def drop(self, name: str, num_bytes: int, pieces: AsyncIterator[bytes]) -> dict[str, Any]:
        self.taken.append((name, num_bytes, b"".join([piece async for piece in pieces])))
        return {"is_here": True}


@pytest.fixture
def desk() -> FakeDesk:
    return FakeDesk()


@pytest.fixture
async def client(desk: FakeDesk) -> AsyncIterator[httpx.AsyncClient]:
    router = APIRouter()
    add_doors(router, desk)
    app = FastAPI()
    app.include_router(router)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://desk") as client:
        yield client


async def test_nothing_is_done_without_an_origin(client: httpx.AsyncClient, desk: FakeDesk) -> None:
    assert (await client.post("/echo", json={})).status_code == 403
    assert (await client.post("/odd", json={})).status_code == 403
    assert (await client.post("/drop?name=a", content=b"abc")).status_code == 403
    assert desk.taken == []


async def test_what_is_no_request_is_refused(client: httpx.AsyncClient) -> None:
    client.headers.update(ORIGIN)
    assert (await client.post("/odd", json={})).status_code == 404
    assert (await client.post("/echo", content=b"{")).status_code == 400
    assert (await client.post("/echo", json=[1])).status_code == 400
    endless = b"[" * 100_000
    assert (await client.post("/echo", content=endless)).status_code == 400


async def test_what_comes_is_json_or_a_response_of_its_own(client: httpx.AsyncClient) -> None:
    client.headers.update(ORIGIN)
    assert (await client.post("/echo", json={"a": 1})).json() == {"a": 1}
    drawn = await client.post("/draw", json={})
    assert drawn.content == b"drawn" and drawn.headers["content-type"] == "image/png"


async def test_a_refusal_is_a_sentence_that_hides_nothing(client: httpx.AsyncClient) -> None:
    client.headers.update(ORIGIN)
    refused = (await client.post("/refuse", json={})).json()
    assert refused == {"refused": "There is no file \ufffdfdp.exe."}
    failed = (await client.post("/fail", json={})).json()
    assert failed == {"refused": "This could not be done: File name too long."}


async def test_a_dropped_file_comes_with_its_name_and_its_length(
    client: httpx.AsyncClient, desk: FakeDesk
) -> None:
    client.headers.update(ORIGIN)
    assert (await client.post("/drop?name=a.txt", content=b"abc")).json() == {"is_here": True}

    async def pieces() -> AsyncIterator[bytes]:
        yield b"of no known length"

    assert (await client.post("/drop?name=b.txt", content=pieces())).status_code == 411
    assert desk.taken == [("a.txt", 3, b"abc")]
