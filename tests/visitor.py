"""One tab of a real browser, what a person does in it, and what must never happen in it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Locator, Page, Request, expect

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
LOCAL = ("127.0.0.1", "localhost")
PATIENCE_S = 30.0
expect.set_options(timeout=PATIENCE_S * 1000)

# Requests that a reload or a closed tab cuts off are not faults of the page.
HARMLESS = (
    "net::ERR",
    "AbortError",
    "Failed to fetch",
    "network error",
    # How a sentence for the user arrives.
    "500 (Internal Server Error)",
    "Unexpected error Connection errored out",
)


async def eventually(is_so: Callable[[], Awaitable[Any]], what: str) -> Any:
    """The first true value of `is_so`, or a failure that says what did not happen."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := await is_so():
            return value
        await asyncio.sleep(0.04)
    raise AssertionError(f"{what} did not happen within {PATIENCE_S:g} s")


class Visitor:
    """A person with one tab open on the app."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.faults: list[str] = []
        page.on("request", self._on_request)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self._fault(f"page error: {error}"))

    @classmethod
    async def arrive(cls, context: BrowserContext, url: str) -> "Visitor":
        visitor = cls(await context.new_page(), url)
        await visitor.page.goto(url)
        await visitor.settle()
        return visitor

    async def settle(self) -> None:
        """Wait until the page is built, its script has run, and its conversation is shown."""
        await self.page.locator("#composer button[aria-label]").wait_for()
        await self.page.locator("#conversations, #nothing_found").first.wait_for(state="attached")

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in LOCAL:
            self._fault(f"request to {request.url}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._fault(message.text)

    def _fault(self, text: str) -> None:
        if not any(words in text for words in HARMLESS):
            self.faults.append(text)

    # What can be seen

    @property
    def composer(self) -> Locator:
        return self.page.locator("#composer textarea")

    @property
    def stop_button(self) -> Locator:
        return self.page.get_by_role("button", name="Stop", exact=True)

    @property
    def send_button(self) -> Locator:
        return self.page.get_by_role("button", name="Send", exact=True)

    async def texts(self, who: str) -> list[str]:
        """The messages of `user` or `bot`; text content, since skipped rows have no inner text."""
        return await self.page.locator(f"#chat [data-testid={who}] .prose").evaluate_all(
            "rows => rows.map(row => row.textContent.replace(/\\n$/, ''))"
        )

    async def last_answer(self) -> str:
        return ((await self.texts("bot")) or [""])[-1]

    async def sees_answer(self, words: str) -> None:
        async def is_there() -> bool:
            return words in await self.last_answer()

        await eventually(is_there, f"an answer with {words!r}")

    async def sees(self, words: str) -> None:
        await self.page.get_by_text(words).first.wait_for()

    # What can be done

    async def send(self, text: str) -> None:
        await self.composer.fill(text)
        await self.composer.press("Enter")

    async def paste(self, text: str) -> None:
        """Put much text into the box at once; typing it would take a while."""
        await self.composer.evaluate(
            "(box, text) => { box.value = text; box.dispatchEvent(new Event('input')) }", text
        )

    async def open(self, title: str) -> None:
        name = self.page.get_by_text(title, exact=True)
        await self.page.locator("#conversations label").filter(has=name).click()
        title_box = self.page.get_by_label("Title of this conversation")

        async def is_open() -> bool:
            return await title_box.is_visible() and await title_box.input_value() == title

        await eventually(is_open, f"opening {title!r}")

    async def reload(self) -> None:
        await self.page.reload()
        await self.settle()
