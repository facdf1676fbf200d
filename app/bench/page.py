"""A conversation of 500 messages beside one of ten, in a headless Chromium: opening, streaming.

Streaming is judged by what an update costs the main thread of the page, as the browser counts it.
Both conversations end in the same kind of messages; the long one has more of them.
"""

import argparse
import asyncio
import importlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from app.bench.app_process import AppProcess, new_home
from app.bench.compare import Bar, figure_of, interleave, show_pair
from app.bench.machine import machine
from app.bench.options import add_effort, add_model
from app.bench.our_engine import model_of
from app.bench.report import Report
from app.chat.message import MessageState
from app.history.conversations import Conversations
from app.history.database import Database
from app.paths import Paths
from engine.errors import UsageError

OPEN_BAR = Bar(at_most=1.5)
UPDATE_BAR = Bar(at_most=2.0)
COLUMNS = ("measure", "messages", "median", "low", "high", "times", "bar", "passed")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# A prompt of 500 long messages would not fit: those that are not on the page are short.
NUM_SHOWN = 40
PARAGRAPH = "The fire is **low**, and `{number}` logs are left:\n\n- one of oak\n- one of beech\n"
PATIENCE_MS = 300_000
COUNT_UPDATES = """() => {
  window.benchUpdates = 0
  new MutationObserver(() => { window.benchUpdates += 1 })
    .observe(document.querySelector('#chat'), {subtree: true, childList: true, characterData: true})
}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--chromium", default="", metavar="FILE", help="the browser")
    parser.add_argument("--messages", type=int, default=500, metavar="N", help="of the long one")
    add_effort(parser, pairs=5, minutes=8.0)


def run(options: argparse.Namespace) -> Report:
    facts = machine(model=model_of(options.model).stem)
    sizes = {"long": options.messages, "short": 10}
    with new_home() as folder:
        home = Path(folder)
        asyncio.run(fill(home, sizes))
        with AppProcess(home, options.model) as process, Browser(options.chromium) as browser:
            browser.arrive(process.url)
            opened, _ = interleave(
                lambda number: browser.open("long"),
                lambda number: browser.open("short"),
                lambda pair: {"ratio": pair.ours / pair.theirs},
                minutes=options.minutes / 4,
                min_pairs=max(options.pairs, 2),
            )
            # The first answer of each reads its whole conversation.
            for title in sizes:
                browser.stream(title)
            streamed, figures = interleave(
                lambda number: browser.stream("long"),
                lambda number: browser.stream("short"),
                lambda pair: {"ratio": pair.ours / pair.theirs},
                minutes=options.minutes,
                min_pairs=options.pairs,
                on_pair=show_pair(),
            )
    # The very first look at a conversation pays for what the browser then keeps.
    first = opened[0].ours
    long, short = [pair.ours for pair in opened], [pair.theirs for pair in opened]
    ratio = figures["ratio"]
    rows = [
        row("opens, s", sizes["long"], long) | verdict(OPEN_BAR, median(long)) | {"first": first},
        row("opens, s", sizes["short"], short),
        row("main thread an update, ms", sizes["long"], [pair.ours for pair in streamed]),
        row("main thread an update, ms", sizes["short"], [pair.theirs for pair in streamed]),
        row("long / short", None, [pair.ours / pair.theirs for pair in streamed])
        | verdict(UPDATE_BAR, ratio.median),
    ]
    return Report("page", facts, rows, COLUMNS)


def row(measure: str, messages: int | None, values: list[float]) -> dict[str, Any]:
    figure = figure_of(values)
    return {
        "measure": measure,
        "messages": messages,
        "median": figure.median,
        "low": figure.low,
        "high": figure.high,
        "times": figure.num,
    }


def verdict(bar: Bar, value: float) -> dict[str, Any]:
    return {"bar": str(bar), "passed": bar.is_met_by(value)}


async def fill(home: Path, sizes: Mapping[str, int]) -> None:
    """A conversation of each size, with its name as its title."""
    paths = Paths.from_environment({"INGLENOOK_HOME": str(home)})
    paths.create()
    database = Database(paths.database)
    try:
        conversations = Conversations(database)
        for title, size in sizes.items():
            made = await conversations.create(
                title=title, sampling={"max_tokens": 160, "temperature": 0.8, "seed": 1}
            )
            for number in range(size // 2):
                is_shown = size - 2 * number <= NUM_SHOWN
                text = PARAGRAPH.format(number=number) if is_shown else "Yes."
                turn = await conversations.begin_turn(made.conversation_id, "Go on.")
                await conversations.finish_answer(
                    replace(
                        turn.answer, content=text, state=MessageState.DONE, finish_reason="stop"
                    )
                )
    finally:
        database.close()


class Browser:
    """A headless Chromium with one tab on the app, closed with the `with` block."""

    def __init__(self, program: str) -> None:
        program = program or find_browser()
        try:
            # Only tests need this library, so the app does not depend on it.
            driver = importlib.import_module("playwright.sync_api")
        except ImportError as error:
            raise UsageError(
                "This benchmark needs Playwright, which the tests bring: run `make test` once, or"
                " `pip install playwright`."
            ) from error
        self._driver = driver.sync_playwright().start()
        try:
            self._browser = self._driver.chromium.launch(
                executable_path=program or None, headless=True
            )
        except BaseException:
            self._driver.stop()
            raise

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.close()
        self._driver.stop()

    def arrive(self, url: str) -> None:
        self._page = self._browser.new_page(viewport={"width": 1280, "height": 900})
        self._page.set_default_timeout(PATIENCE_MS)
        self._page.goto(url)
        self._page.locator("#composer button[aria-label]").wait_for()
        self._page.locator("#conversations label").first.wait_for()
        self._page.evaluate(COUNT_UPDATES)
        self._metrics = self._page.context.new_cdp_session(self._page)
        self._metrics.send("Performance.enable")

    def open(self, title: str) -> float:
        """Seconds from the click to the last message of it on the page, from an empty chat."""
        page = self._page
        page.get_by_role("button", name="New chat").first.click()
        page.wait_for_function("() => !document.querySelector('#chat [data-testid=bot] .prose')")
        label = page.locator("#conversations label").filter(has=page.get_by_text(title, exact=True))
        label.scroll_into_view_if_needed()
        began = perf_counter()
        label.click()
        page.locator("#chat [data-testid=bot] .prose").last.wait_for(state="attached")
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        return perf_counter() - began

    def stream(self, title: str) -> float:
        """Send a message and wait for the end of its answer: milliseconds an update."""
        self.open(title)
        page = self._page
        send = page.get_by_role("button", name="Send", exact=True)
        send.wait_for()
        box = page.locator("#composer textarea")
        box.fill("Go on, at length.")
        before, updates = self._busy_ms(), page.evaluate("() => window.benchUpdates")
        box.press("Enter")
        page.get_by_role("button", name="Stop", exact=True).wait_for()
        send.wait_for()
        spent = self._busy_ms() - before
        return float(spent / max(1, page.evaluate("() => window.benchUpdates") - updates))

    def _busy_ms(self) -> float:
        """The time of all tasks of the page's main thread so far."""
        metrics = self._metrics.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) * 1e3 for one in metrics if one["name"] == "TaskDuration")


def find_browser() -> str:
    """An installed one; otherwise nothing, and Playwright looks for its own."""
    chosen = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    return chosen or ""
