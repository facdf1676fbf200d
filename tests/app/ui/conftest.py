"""The page on a real port, with a fake model behind it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext

from app.web import server
from tests.fakes_chat import FakeServices, Script
from tests.serving import served
from tests.visitor import Visitor

Arrive = Callable[..., Awaitable[Visitor]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Any, str]]:
    """The services and the address; one server for all tests, in the tests' own loop."""
    folder: Path = tmp_path_factory.mktemp("home")
    services = FakeServices(folder)
    async with served(lambda port: server.build(services, port, folder / "cache")) as url:
        yield services, f"{url}/"
    if "documents" in services.__dict__:
        await services.documents.close()
    services.database.close()


@pytest.fixture
def services(running: tuple[FakeServices, str]) -> FakeServices:
    running[0].jobs.script = Script()
    return running[0]


@pytest_asyncio.fixture(loop_scope="session")
async def arrive(running: tuple[FakeServices, str], browser: Browser) -> AsyncIterator[Arrive]:
    """Opens a tab: a new browser profile, or a second tab of one. Nothing forbidden happens."""
    contexts: list[BrowserContext] = []
    visitors: list[Visitor] = []

    async def arriving(beside: Visitor | None = None, **options: Any) -> Visitor:
        context = beside.page.context if beside else await browser.new_context(**options)
        contexts.append(context)
        visitors.append(await Visitor.arrive(context, running[1]))
        return visitors[-1]

    yield arriving
    for context in contexts:
        await context.close()
    assert [fault for visitor in visitors for fault in visitor.faults] == []
