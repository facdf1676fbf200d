"""Where a Chromium for the tests is: one that is installed, or the one Playwright fetched."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC_APPLICATIONS = ("Chromium", "Google Chrome")
PLAYWRIGHT_FOLDERS = {
    "darwin": "~/Library/Caches/ms-playwright",
    "win32": "~/AppData/Local/ms-playwright",
}
PLAYWRIGHT_PROGRAMS = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    "chromium-*/chrome-win*/chrome.exe",
)


@functools.cache
def find_chromium() -> str | None:
    """The path of a browser that starts. CHROMIUM in the environment goes before all others."""
    return next((path for path in candidates() if starts(path)), None)


def candidates() -> Iterator[str]:
    if chosen := os.environ.get("CHROMIUM"):
        yield chosen
    for name in NAMES:
        if path := shutil.which(name):
            yield path
    if sys.platform == "darwin":
        for application in MAC_APPLICATIONS:
            yield f"/Applications/{application}.app/Contents/MacOS/{application}"
    if sys.platform == "win32":
        for variable in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
            if folder := os.environ.get(variable):
                yield str(Path(folder, "Google/Chrome/Application/chrome.exe"))
    browsers = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or PLAYWRIGHT_FOLDERS.get(
        sys.platform, "~/.cache/ms-playwright"
    )
    for pattern in PLAYWRIGHT_PROGRAMS:
        # The highest number is the newest.
        for program in sorted(Path(browsers).expanduser().glob(pattern), reverse=True):
            yield str(program)


def starts(path: str) -> bool:
    """Ubuntu's `chromium-browser` may be a stub, and a fetched one may lack system libraries."""
    if sys.platform == "win32":
        # There `--version` opens a window instead of answering.
        return Path(path).is_file()
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
