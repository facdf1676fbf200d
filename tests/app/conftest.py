"""One browser for all tests that need one."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.chromium import find_chromium
from tests.visitor import FLAGS


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = find_chromium()
    if path is None:
        pytest.fail("There is no Chromium: `make test` fetches one, or name one in CHROMIUM.")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        await browser.close()
