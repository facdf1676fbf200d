"""The real app under its launcher, killed for real in the middle of an answer.

Every crash happens inside llama.cpp, in the engine's thread, while the starter model writes. What
must come of it: the door stays open, the cause is named, and nothing that was stored is lost.
"""

import asyncio
import html
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from app.launch.report import crash_report, kept_crashes
from app.paths import Paths
from tests.app.test_end_to_end import mounted
from tests.launched import PATIENCE_S, ROOT, Launched
from tests.visitor import Visitor, eventually

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(os.name == "nt", reason="Windows has other signals"),
]

DYING_APP = (sys.executable, str(ROOT / "tests" / "dying_app.py"))


def stored(home: Path) -> list[tuple[str, str, str]]:
    """Role, state and content of every message, read beside the app as SQLite allows."""
    file = home / "data" / "history.sqlite3"
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute(
                "select role, state, content from message order by seq"
            ).fetchall()
        except sqlite3.OperationalError:
            return []  # not made yet


def partial(home: Path) -> str:
    return next((each[2] for each in stored(home) if each[0] == "assistant"), "")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("SIGSEGV", "a fault in memory (SIGSEGV) while SmolLM2"),
        ("SIGABRT", "a failed check in a library (SIGABRT) while SmolLM2"),
        ("SIGILL", "an instruction that this processor does not have (SIGILL) while SmolLM2"),
        ("SIGKILL", "something outside of it that ended it (SIGKILL)"),
        ("memory", "too little memory (SIGABRT)"),
        ("memory in Python", "too little memory"),
        ("card", "a fault of the graphics card (SIGABRT)"),
        ("error of the card", "a fault of the graphics card"),
    ],
)
def test_the_app_comes_back_with_all_that_was_written_and_says_why(
    home: Path, starter: Path, how: str, words: str
) -> None:
    with Launched(home, command=DYING_APP, environment={"DIES_BY": how}) as app:
        first, port = app.until_ready(), app.port
        seen = app.wait_for(lambda: len(partial(home)) > 20 and partial(home), "an answer")
        (home / "die").touch()
        app.wait_for((home / "died").exists, "the crash")
        # Whatever happens, somebody answers, and names the cause as soon as it is known.
        causes = set()

        def is_back() -> str:
            state = app.state()
            causes.add(state.get("starting", {}).get("crash", ""))
            instance: str = state.get("instance", "")
            return instance if instance != first else ""

        app.wait_for(is_back, "the app")
        assert app.port == port
        assert any(words in cause for cause in causes), causes
        user, (role, state, content) = stored(home)
        assert user == ("user", "done", "Tell me a long story about the sea.")
        assert (role, content[: len(seen)]) == ("assistant", seen)
        assert state != "streaming"
        shown = html.unescape(app.get("/config")[1])
        assert words in shown and "was started again" in shown
        report = crash_report(Paths.from_environment({"INGLENOOK_HOME": str(home)}))
        assert words in report
        assert "story" not in report and seen[:20] not in report


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_an_open_page_goes_on_by_itself_and_shows_what_was_written(
    home: Path, starter: Path, browser: Browser
) -> None:
    environment = {"DIES_BY": "SIGABRT"}
    with Launched(home, command=DYING_APP, environment=environment) as app:
        await asyncio.to_thread(app.until_ready)
        tab = await Visitor.arrive(await browser.new_context(), f"{app.url}/")
        title = tab.page.locator("#conversations label")
        await title.first.click()

        async def long_answer() -> str:
            text = await tab.last_answer()
            return text if len(text) > 200 else ""

        seen = await eventually(long_answer, "an answer")
        await tab.composer.fill("A message that was not sent yet")
        (home / "die").touch()
        # Of its own accord: the page is told what happened, and loads again when the app is there.
        note = tab.page.locator("#start_note")
        await expect(note).to_contain_text("a failed check in a library", timeout=PATIENCE_S * 1000)
        await tab.settle()
        # Of its end half a second may be lost.
        await tab.sees_answer(seen[:60])
        await expect(tab.composer).to_have_value("A message that was not sent yet")
        await tab.page.context.close()
        # What the page asked for meanwhile was put off.
        assert [fault for fault in tab.faults if "503 (Service Unavailable)" not in fault] == []


def test_frames_of_the_crash_name_the_place(home: Path, starter: Path) -> None:
    with Launched(home, command=DYING_APP, environment={"DIES_BY": "SIGSEGV"}) as app:
        first = app.until_ready()
        (home / "die").touch()
        app.until_ready(but=first)
        paths = Paths.from_environment({"INGLENOOK_HOME": str(home)})
        (crash,) = kept_crashes(paths.crashes)
        assert crash.lines[0] == "Fatal Python error: Segmentation fault"
        assert any("engine.py" in line and " step" in line for line in crash.lines)


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory, starter: Path) -> Iterator[Launched]:
    # A home with a space and letters that need Unicode, from a place that is nobody's.
    home = tmp_path_factory.mktemp("home") / "Täst Ünï dir"
    home.mkdir()
    with Launched(home, "--safe", cwd="/") as app:
        app.until_ready()
        yield app


def test_safe_mode_is_safe_and_says_so(safe: Launched) -> None:
    config = html.unescape(safe.get("/config")[1])
    assert "Safe mode: a context of at most 2,048 tokens" in config
    assert "Start as usual" in config


def test_safe_mode_can_be_left_on_the_page(safe: Launched) -> None:
    first = safe.until_ready()
    assert safe.press("/_app/restart") == 200
    safe.until_ready(but=first)
    assert "Safe mode:" not in safe.get("/config")[1]
    assert json.loads(safe.get("/_app/state")[1])["instance"] != first


def test_the_report_can_be_had_from_the_app(safe: Launched) -> None:
    status, text = safe.get("/_app/report")
    assert status == 200 and text.startswith("Inglenook report")
    assert "Täst" not in text


def test_a_second_click_asks_the_app_to_show_its_window(safe: Launched) -> None:
    code, said = Launched(safe.home).end()
    assert (code, said) == (0, f"Inglenook is running already: {safe.url}\n")


def test_quit_on_the_page_ends_both(home: Path, starter: Path) -> None:
    with Launched(home) as app:
        app.until_ready()
        assert app.get("/_app/quit")[0] == 404
        assert app.press("/_app/quit") == 200
        assert app.end()[0] == 0
    assert not (home / "data" / "owner.json").exists()
    assert not (home / "data" / "launcher.json").exists()


def test_a_quit_while_an_answer_is_written_asks_first_and_keeps_it(
    home: Path, starter: Path
) -> None:
    with Launched(home, command=DYING_APP, environment={"DIES_BY": "never"}) as app:
        app.until_ready()
        seen = app.wait_for(lambda: len(partial(home)) > 20 and partial(home), "an answer")
        assert app.press("/_app/quit") == 409
        assert app.press("/_app/quit?anyway=1") == 200
        assert app.end()[0] == 0
        assert partial(home).startswith(seen)


@pytest.mark.parametrize("name", ["HOME", "PATH", "DISPLAY"])
def test_it_starts_without_what_is_usually_there(home: Path, starter: Path, name: str) -> None:
    """No home folder in the environment, no program in the path, no screen: one sentence is said
    for what is missing, and the app is there."""
    environment = {name: "" if name != "HOME" else "/nonexistent"}
    with Launched(home, environment=environment, cwd="/") as app:
        app.until_ready()
        app.process.send_signal(signal.SIGTERM)
        assert app.end()[0] == 0


def test_a_home_without_room_is_one_sentence(home: Path, starter: Path) -> None:
    with mounted(home, "size=120k"), Launched(home) as app:
        sentence = app.until_problem()["sentence"]
        assert sentence.startswith("There is no room left") and "try again" in sentence
        app.press("/_app/quit")
        assert app.end()[0] == 0
