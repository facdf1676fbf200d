"""One crash is a new start, two are a question, and an end that was wanted is an end."""

import pytest

from app.launch.child import End
from app.launch.watchdog import WINDOW_S, Close, Offer, StartAgain, Tell, Watchdog


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watchdog(clock: Clock) -> Watchdog:
    return Watchdog(clock)


SEGV = End(code=-11)


@pytest.mark.parametrize("code", [0, -15, -2, -1, 0xC000013A])
def test_an_end_that_somebody_wanted_is_no_crash(watchdog: Watchdog, code: int) -> None:
    assert watchdog.judge(End(code=code)) == Close()


@pytest.mark.parametrize("code", [-11, -6, -4, -7, -8, -9, 1, 3, 0xC0000005])
def test_the_first_crash_is_a_new_start(watchdog: Watchdog, code: int) -> None:
    assert isinstance(watchdog.judge(End(code=code)), StartAgain)


def test_an_engine_that_died_is_a_crash_though_its_process_ended_in_order(
    watchdog: Watchdog,
) -> None:
    assert isinstance(watchdog.judge(End(code=0, fault="MemoryError")), StartAgain)


def test_what_the_app_said_itself_is_told_and_not_tried_again(watchdog: Watchdog) -> None:
    sentence = "The history is damaged: put a backup in its place."
    assert watchdog.judge(End(code=1, failed=sentence)) == Tell(sentence)
    assert isinstance(watchdog.judge(SEGV), StartAgain)


def test_the_second_crash_soon_after_is_a_question(watchdog: Watchdog, clock: Clock) -> None:
    watchdog.judge(SEGV)
    clock.now = WINDOW_S - 1
    assert isinstance(watchdog.judge(SEGV), Offer)


def test_two_crashes_of_different_causes_are_told_apart(watchdog: Watchdog, clock: Clock) -> None:
    watchdog.judge(SEGV)
    clock.now = 300.0
    second = watchdog.judge(End(code=-9))
    assert isinstance(second, Offer) and not second.is_same
    watchdog.forgive()
    watchdog.judge(SEGV)
    again = watchdog.judge(SEGV)
    assert isinstance(again, Offer) and again.is_same


def test_a_crash_long_after_the_other_is_the_first_again(watchdog: Watchdog, clock: Clock) -> None:
    watchdog.judge(SEGV)
    clock.now = WINDOW_S + 1
    assert isinstance(watchdog.judge(SEGV), StartAgain)


def test_who_tries_again_begins_anew(watchdog: Watchdog) -> None:
    watchdog.judge(SEGV)
    watchdog.forgive()
    assert isinstance(watchdog.judge(SEGV), StartAgain)
