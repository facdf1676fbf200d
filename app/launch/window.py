"""Where the page is shown: a window of its own where the system has one, else a browser.

    webview    pywebview, where it is installed; in a process of its own, which may fail
    chromium   an installed Chrome, Edge or Chromium as a window without an address bar
    browser    the browser that the system opens links with
    nothing    then the address is said

Each is tried in its turn; one that ends at once with a failure, or shows nothing, was none.
"""

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SETTLED_S = 4.0
"""A window that stands so long is taken for one."""
NAMES = (
    "google-chrome",
    "google-chrome-stable",
    "chromium",
    "chromium-browser",
    "microsoft-edge",
    "microsoft-edge-stable",
)
MAC_APPLICATIONS = ("Google Chrome", "Chromium", "Microsoft Edge")
WINDOWS_PLACES = ("Google/Chrome/Application/chrome.exe", "Microsoft/Edge/Application/msedge.exe")
WINDOWS_FOLDERS = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
CHROMIUM_FLAGS = (
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1100,800",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What the choice depends on, so that a test can be another system."""

    platform: str = sys.platform
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    which: Callable[[str], str | None] = shutil.which
    is_file: Callable[[Path], bool] = Path.is_file
    has_module: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None
    open_link: Callable[[str], bool] = webbrowser.open

    @property
    def has_display(self) -> bool:
        """Without one a browser would open in the terminal, or nowhere."""
        if self.platform in ("win32", "darwin"):
            return True
        return any(self.environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to show the page. `command` is a process; without one the system's browser."""

    name: str
    command: tuple[str, ...] = ()


def choices(
    url: str, profile: Path, own_command: Sequence[str], system: System
) -> Iterator[Choice]:
    """The ways there are here, the best one first."""
    if system.has_display:
        if system.has_module("webview") and _has_toolkit(system):
            yield Choice("webview", (*own_command, "window", url))
        for program in chromiums(system):
            flags = (f"--app={url}", f"--user-data-dir={profile}", *CHROMIUM_FLAGS)
            yield Choice("chromium", (program, *flags))
    if system.has_display or system.environment.get("BROWSER"):
        yield Choice("browser")


def chromiums(system: System) -> Iterator[str]:
    if system.platform == "win32":
        for variable in WINDOWS_FOLDERS:
            for place in WINDOWS_PLACES:
                folder = system.environment.get(variable)
                if folder and system.is_file(Path(folder, place)):
                    yield str(Path(folder, place))
    elif system.platform == "darwin":
        for name in MAC_APPLICATIONS:
            program = Path(f"/Applications/{name}.app/Contents/MacOS/{name}")
            if system.is_file(program):
                yield str(program)
    else:
        for name in NAMES:
            if program_path := system.which(name):
                yield program_path


def _has_toolkit(system: System) -> bool:
    """On Linux pywebview is nothing without GTK or Qt."""
    if system.platform in ("win32", "darwin"):
        return True
    return any(system.has_module(name) for name in ("gi", "qtpy"))


class Window:
    """Opens the page, again and again if asked. Owned by the launcher's thread."""

    def __init__(
        self,
        url: str,
        profile: Path,
        own_command: Sequence[str],
        say: Callable[[str], None],
        system: System | None = None,
        settled_s: float = SETTLED_S,
        was_seen: Callable[[], bool] = lambda: True,
    ) -> None:
        self.url = url
        self._profile = profile
        self._own_command = own_command
        self._say = say
        self._system = system or System()
        self._settled_s = settled_s
        self._was_seen = was_seen

    def open(self) -> None:
        """In a thread: the first way that works may have to be found by trying."""
        threading.Thread(target=self.open_and_wait, name="window", daemon=True).start()

    def open_and_wait(self) -> str:
        """The name of the choice that stands; empty when there is none, and then it is said."""
        found = choices(self.url, self._profile, self._own_command, self._system)
        for choice in found:
            if self._try(choice):
                return choice.name
        self._say(f"Open {self.url} in a browser on this computer: none was found to do it.")
        return ""

    def _try(self, choice: Choice) -> bool:
        if not choice.command:
            return self._open_link()
        try:
            process = subprocess.Popen(
                choice.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # Its signals and its end are its own.
                start_new_session=True,
            )
        except OSError:
            return False
        try:
            # One that is open already takes the address over and ends well.
            return process.wait(self._settled_s) == 0
        except subprocess.TimeoutExpired:
            if self._was_seen():
                return True
        # A window that stays empty.
        process.kill()
        process.wait()
        return False

    def _open_link(self) -> bool:
        try:
            return self._system.open_link(self.url)
        except (OSError, webbrowser.Error):
            return False


def show_webview(url: str) -> int:
    """The window's own process, until it is closed. Raises ImportError without pywebview."""
    webview: Any = importlib.import_module("webview")
    webview.create_window("Inglenook", url, width=1100, height=800, min_size=(390, 480))
    # Else the choice of light and dark would be forgotten.
    webview.start(private_mode=False)
    return 0
