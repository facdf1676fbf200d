"""The page asks the launcher for an end, a new start, the logs or the report."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
import pytest
from fastapi import FastAPI

from app.chat.writing import Writing
from app.launch.link import Link
from app.owner import TOKEN_HEADER
from app.paths import Paths
from app.web.launch import router
from tests.fakes_model import FakeEngine, FakeModelServices
from tests.serving import served
from tests.waiting import until


class FakeLink:
    """Notes what the launcher is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, wish: str) -> None:
        self.asked.append(wish)


class Room:
    def __init__(self, paths: Paths, link: FakeLink | None) -> None:
        self.link = link
        self.ended: list[str] = []
        # Its answers go on until they are stopped.
        self.engine = FakeEngine()
        self.services = FakeModelServices(paths, self.engine)
        self._paths = paths

    def at(self, _: int) -> FastAPI:
        app = FastAPI()
        link = cast(Link | None, self.link)
        end = self.ended.append
        app.include_router(router(self.services, self._paths, "token", link, lambda: end("ended")))
        return app

    @asynccontextmanager
    async def page(self) -> AsyncIterator[httpx.AsyncClient]:
        try:
            async with served(self.at) as url:
                own = {"Origin": url}
                async with httpx.AsyncClient(base_url=url, headers=own, trust_env=False) as client:
                    yield client
        finally:
            await self.services.close()


@pytest.fixture
def room(paths: Paths) -> Room:
    return Room(paths, FakeLink())


def asked(room: Room) -> list[str]:
    assert room.link is not None
    return room.link.asked


async def test_an_idle_app_quits_at_once(room: Room) -> None:
    async with room.page() as page:
        assert (await page.post("/_app/quit")).status_code == 200
    assert asked(room) == ["quit"]


async def test_an_app_that_writes_asks_before(room: Room) -> None:
    async with room.page() as page:
        conversation = await room.services.conversations.create()
        await room.services.jobs.send(conversation.conversation_id, "Hello")
        await until(lambda: room.services.activity()["jobs"])
        refused = await page.post("/_app/quit")
        assert refused.status_code == 409
        assert refused.json()["writing"].startswith("1 answer is being written.")
        assert asked(room) == []
        assert (await page.post("/_app/quit?anyway=1")).status_code == 200
        room.services.jobs.stop(conversation.conversation_id)
    assert asked(room) == ["quit"]


async def test_a_message_that_waits_for_the_model_is_asked_about(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = asyncio.Event()
    plan = room.services.session.plan_reply

    async def plan_once_loaded(*message: Any) -> Writing:
        await loaded.wait()
        return await plan(*message)

    monkeypatch.setattr(room.services.session, "plan_reply", plan_once_loaded)
    async with room.page() as page:
        conversation = await room.services.conversations.create()
        sending = asyncio.create_task(
            room.services.jobs.send(conversation.conversation_id, "Hello")
        )
        await until(lambda: room.services.jobs.num_starting)
        assert room.services.activity()["jobs"] == 1
        refused = await page.post("/_app/quit")
        assert refused.status_code == 409
        waits = "1 message waits for the model, and is not stored yet."
        assert refused.json() == {"writing": waits}
        loaded.set()
        await sending
        assert room.services.jobs.num_starting == 0
        room.services.jobs.stop(conversation.conversation_id)
    assert asked(room) == []


async def test_without_a_launcher_it_ends_itself_and_cannot_start_again(paths: Paths) -> None:
    room = Room(paths, None)
    async with room.page() as page:
        again = await page.post("/_app/restart")
        assert again.status_code == 409 and "in a terminal" in again.text
        assert (await page.post("/_app/show", headers={TOKEN_HEADER: "token"})).status_code == 403
        assert room.ended == []
        assert (await page.post("/_app/quit")).status_code == 200
    assert room.ended == ["ended"]


async def test_a_new_start_is_as_usual_or_safe(room: Room) -> None:
    async with room.page() as page:
        await page.post("/_app/restart")
        await page.post("/_app/restart?safe=1")
    assert asked(room) == ["restart", "safe"]


async def test_a_window_is_shown_for_who_has_the_token(room: Room) -> None:
    async with room.page() as page:
        assert (await page.post("/_app/show", headers={TOKEN_HEADER: "no"})).status_code == 403
        assert (await page.post("/_app/show", headers={TOKEN_HEADER: "token"})).status_code == 200
    assert asked(room) == ["show"]


@pytest.mark.parametrize("path", ["/_app/quit", "/_app/restart", "/_app/logs"])
async def test_only_the_page_itself_is_heard(room: Room, path: str) -> None:
    async with room.page() as page:
        del page.headers["origin"]
        foreign: list[dict[str, Any]] = [
            {},
            {"Origin": "http://evil.test"},
            {"Origin": str(page.base_url).rstrip("/"), "Sec-Fetch-Site": "cross-site"},
        ]
        for headers in foreign:
            assert (await page.post(path, headers=headers)).status_code == 403
        assert (await page.get(path)).status_code == 404
    assert asked(room) == []


async def test_the_report_is_text(room: Room) -> None:
    async with room.page() as page:
        report = await page.get("/_app/report")
    assert report.headers["content-type"].startswith("text/plain")
    assert report.text.startswith("Inglenook report")
