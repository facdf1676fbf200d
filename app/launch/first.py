"""A second click brings the first one to the front, and whoever died is no first one."""

import time
import urllib.error
import urllib.request
from collections.abc import Callable

from app.owner import (
    TOKEN_HEADER,
    HomeLock,
    OwnerAddress,
    launcher_address,
    owner_address,
)
from app.paths import Paths
from engine.errors import HomeBusy

PATIENCE_S = 10.0
POLL_S = 0.1


def find_first(paths: Paths, lock: HomeLock, patience_s: float = PATIENCE_S) -> OwnerAddress | None:
    """Where the first one answers. None: we are it, and `lock` is ours. Raises HomeError."""
    deadline = time.monotonic() + patience_s
    while True:
        if lock.try_acquire():
            found = _without_launcher(paths)
            if found is not None:
                lock.release()
            return found
        for note in (owner_address(paths), launcher_address(paths)):
            if note is not None and note.answers():
                return note
        if time.monotonic() >= deadline:
            raise HomeBusy(
                f"Another Inglenook was started in {paths.data} and does not answer after"
                f" {patience_s:.0f} s: wait until it has ended, or end it, and try again."
            )
        time.sleep(POLL_S)


def _without_launcher(paths: Paths) -> OwnerAddress | None:
    """The app that somebody started in a terminal."""
    app = HomeLock(paths)
    if app.try_acquire():
        app.release()
        return None
    note = owner_address(paths)
    # A command that works for a moment leaves no note; the app will wait for it.
    return note if note is not None and note.answers() else None


def show_first(first: OwnerAddress, open_window: Callable[[], object]) -> None:
    """Its launcher opens the window again; an app without one has it opened by us."""
    request = urllib.request.Request(
        f"{first.url}/_app/show", method="POST", headers={TOKEN_HEADER: first.token}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=5):
            return
    except (OSError, ValueError):
        open_window()
