"""The page is shown in the best way that a system has, and in the next one where that fails."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.launch import window as window_file
from app.launch.splash import Splash
from app.launch.status import Status
from app.launch.window import System, Window, choices, show_webview
from app.web.port import bind
from tests.chromium import find_chromium

URL = "http://127.0.0.1:7341"
OWN = ("/opt/inglenook",)


def system(
    platform: str = "linux",
    programs: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
    modules: tuple[str, ...] = (),
    environment: dict[str, str] | None = None,
    open_link: Callable[[str], bool] = lambda url: True,
) -> System:
    return System(
        platform=platform,
        environment={"DISPLAY": ":0"} if environment is None else environment,
        which=lambda name: f"/nowhere/{name}" if name in programs else None,
        is_file=lambda path: path.as_posix() in files,
        has_module=lambda name: name in modules,
        open_link=open_link,
    )


def names(here: System) -> list[str]:
    return [choice.name for choice in choices(URL, Path("/profile"), OWN, here)]


def test_a_webview_goes_before_a_browsers_window_and_that_before_a_tab() -> None:
    here = system(programs=("chromium",), modules=("webview", "gi"))
    assert names(here) == ["webview", "chromium", "browser"]


def test_on_linux_a_webview_without_a_toolkit_is_none() -> None:
    assert names(system(modules=("webview",))) == ["browser"]
    assert names(system("darwin", modules=("webview",))) == ["webview", "browser"]


@pytest.mark.parametrize(
    ("here", "program"),
    [
        (system(programs=("microsoft-edge",)), "/nowhere/microsoft-edge"),
        (
            system("darwin", files=("/Applications/Chromium.app/Contents/MacOS/Chromium",)),
            "/Applications/Chromium.app/Contents/MacOS/Chromium",
        ),
        (
            system(
                "win32",
                files=("C:/Program Files/Microsoft/Edge/Application/msedge.exe",),
                environment={"PROGRAMFILES": "C:/Program Files"},
            ),
            "C:/Program Files/Microsoft/Edge/Application/msedge.exe",
        ),
    ],
)
def test_an_installed_chromium_is_a_window_with_a_profile_of_its_own(
    here: System, program: str
) -> None:
    (choice, browser) = choices(URL, Path("/profile"), OWN, here)
    assert Path(choice.command[0]).as_posix() == program
    assert choice.command[1:3] == (f"--app={URL}", f"--user-data-dir={Path('/profile')}")
    assert browser.name == "browser"


def test_without_a_display_only_a_browser_that_was_named_is_tried() -> None:
    assert names(system(programs=("chromium",), environment={})) == []
    assert names(system(environment={"BROWSER": "lynx"})) == ["browser"]
    assert names(system(environment={"WAYLAND_DISPLAY": "wayland-0"})) == ["browser"]


def window(here: System, said: list[str]) -> Window:
    return Window(URL, Path("/profile"), OWN, said.append, here, settled_s=0.3)


def test_a_window_that_ends_with_a_failure_makes_way_for_the_browser() -> None:
    opened: list[str] = []
    here = system(programs=("chromium",), open_link=lambda url: opened.append(url) is None)
    shown = window(here, [])
    # No such program: as good as one that fails.
    assert shown.open_and_wait() == "browser"
    assert opened == [URL]


@pytest.mark.parametrize(
    ("code", "found"),
    [("import time; time.sleep(60)", True), ("pass", True), ("raise SystemExit(1)", False)],
)
def test_a_window_stands_when_it_stays_or_hands_the_address_on(
    monkeypatch: pytest.MonkeyPatch, code: str, found: bool
) -> None:
    command = (sys.executable, "-S", "-c", code)
    monkeypatch.setattr(
        window_file, "choices", lambda *_: iter([window_file.Choice("chromium", command)])
    )
    said: list[str] = []
    shown = Window(URL, Path("/profile"), OWN, said.append, system(), settled_s=1.0)
    assert bool(shown.open_and_wait()) is found
    assert bool(said) is not found


def test_a_window_that_stays_empty_makes_way_for_the_browser(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = (sys.executable, "-S", "-c", "import time; time.sleep(60)")
    ways = [window_file.Choice("webview", command), window_file.Choice("browser")]
    monkeypatch.setattr(window_file, "choices", lambda *_: iter(ways))
    shown = Window(
        URL, Path("/profile"), OWN, print, system(), settled_s=0.3, was_seen=lambda: False
    )
    assert shown.open_and_wait() == "browser"


def test_where_nothing_can_show_it_the_address_is_said() -> None:
    said: list[str] = []
    assert window(system(open_link=lambda url: False), said).open_and_wait() == ""
    assert said == [f"Open {URL} in a browser on this computer: none was found to do it."]


def test_the_webview_keeps_the_choices_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    class Webview:
        def __init__(self) -> None:
            self.asked: list[Any] = []

        def create_window(self, title: str, url: str, **_: Any) -> None:
            self.asked.append((title, url))

        def start(self, private_mode: bool = True) -> None:
            self.asked.append(private_mode)

    webview = Webview()
    monkeypatch.setitem(sys.modules, "webview", webview)
    assert show_webview(URL) == 0
    assert webview.asked == [("Inglenook", URL), False]


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A screen that nobody sees, and a folder for what belongs to it."""
    server = shutil.which("Xvfb")
    if server is None:
        pytest.skip("there is no Xvfb")
    read, write = os.pipe()
    with subprocess.Popen(
        [server, "-displayfd", str(write), "-screen", "0", "1200x900x24", "-nolisten", "tcp"],
        pass_fds=(write,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(write)
        with os.fdopen(read) as numbers:
            monkeypatch.setenv("DISPLAY", f":{numbers.readline().strip()}")
        yield tmp_path
        process.terminate()


@pytest.mark.browser
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has a screen of its own")
def test_a_real_chromium_shows_the_splash_in_a_window_of_its_own(screen: Path) -> None:
    browser = find_chromium()
    assert browser is not None, "no Chromium was found"
    pid = screen / "pid"
    program = screen / "chromium"
    # The superuser may run it only without its sandbox.
    program.write_text(
        f'#!/bin/sh\n[ -e "{pid}" ] || echo $$ > "{pid}"\nexec "{browser}" --no-sandbox "$@"\n'
    )
    program.chmod(0o700)
    here = System(
        which=lambda name: str(program) if name == "chromium" else None,
        has_module=lambda name: False,
        open_link=lambda url: False,
    )
    said: list[str] = []
    with bind(port=0) as sock:
        splash = Splash(sock, "token", Status, lambda wish: None, str)
        splash.open()
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        profile = screen / "cache" / "window"
        shown = Window(
            url, profile, OWN, said.append, here, settled_s=15, was_seen=lambda: splash.was_seen
        )
        assert (shown.open_and_wait(), said) == ("chromium", [])
        assert splash.was_seen and profile.is_dir()
        # The second time the first one takes it over.
        assert shown.open_and_wait() == "chromium"
        splash.shut()
    os.kill(int(pid.read_text()), signal.SIGTERM)
