"""What follows when the app's process has ended: nothing, a new start, or a question.

ended as asked, or by TERM, INT, HUP   -> the launcher ends as well
ended with a sentence of its own       -> the sentence is shown, with what can be done
crashed once                           -> started again, and the cause is named
crashed twice within ten minutes       -> not started blindly: safe mode is offered
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from app.launch.child import End
from app.launch.crash import Crash, crash_of, signal_name

WINDOW_S = 600.0
MOST_CRASHES = 2
WANTED = {"SIGTERM", "SIGINT", "SIGHUP"}
WANTED_CODES = {0, 0xC000013A}
"""The second is Windows' Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Close:
    """Somebody wanted it to end."""


@dataclass(frozen=True, slots=True)
class Tell:
    """It could not start, and said why."""

    sentence: str


@dataclass(frozen=True, slots=True)
class StartAgain:
    crash: Crash


@dataclass(frozen=True, slots=True)
class Offer:
    """It crashes again and again; `is_same`: each time by the same cause."""

    crash: Crash
    is_same: bool = True


class Watchdog:
    """Remembers when it crashed. Owned by the launcher's thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._crashes: list[tuple[float, str]] = []

    def judge(self, end: End, when: str = "") -> Close | Tell | StartAgain | Offer:
        if end.failed:
            return Tell(end.failed)
        if was_wanted(end):
            return Close()
        now = self._clock()
        crash = crash_of(end, when)
        recent = [each for each in self._crashes if now - each[0] < WINDOW_S]
        self._crashes = [*recent, (now, crash.cause)]
        if len(self._crashes) < MOST_CRASHES:
            return StartAgain(crash)
        return Offer(crash, is_same=len({cause for _, cause in self._crashes}) == 1)

    def forgive(self) -> None:
        """Somebody decided to try again, and knows what happened."""
        self._crashes.clear()


def was_wanted(end: End) -> bool:
    """Whether somebody ended it."""
    return not end.fault and (end.code in WANTED_CODES or signal_name(end.code) in WANTED)
