"""Work in the background: nothing that comes while it is done is missed."""

import asyncio
import logging

import pytest

from app.documents.background import Background
from tests.waiting import until


class Rounds:
    """Work that stops in the middle of a round until `gate` is set, and fails when it is told."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.num_begun = 0
        self.num_done = 0
        self.error: Exception | None = None
        self.background = Background(self.work, "nothing more is done")

    async def work(self) -> None:
        self.num_begun += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.num_done += 1


async def test_nothing_is_done_before_it_is_woken() -> None:
    rounds = Rounds()
    await rounds.background.settled()
    await rounds.background.rested(1)
    await rounds.background.close()
    assert rounds.num_begun == 0 and not rounds.background.is_working


async def test_who_wakes_it_during_a_round_gets_one_more() -> None:
    rounds = Rounds()
    rounds.background.wake()
    await until(lambda: rounds.num_begun == 1)
    assert rounds.background.is_working and not rounds.background.is_woken
    rounds.background.wake()
    rounds.background.wake()
    assert rounds.background.is_woken
    rounds.gate.set()
    await rounds.background.settled()
    assert rounds.num_done == 2 and not rounds.background.is_working


async def test_who_waits_for_a_while_does_not_end_the_work() -> None:
    rounds = Rounds()
    rounds.background.wake()
    await rounds.background.rested(0.01)
    assert rounds.num_done == 0 and rounds.background.is_working
    rounds.gate.set()
    await rounds.background.rested(30)
    assert rounds.num_done == 1


async def test_who_stops_waiting_does_not_end_the_work() -> None:
    rounds = Rounds()
    rounds.background.wake()
    waiting = asyncio.create_task(rounds.background.settled())
    await until(lambda: rounds.num_begun == 1)
    waiting.cancel()
    rounds.gate.set()
    await rounds.background.settled()
    assert rounds.num_done == 1


async def test_what_ends_the_work_is_told_and_the_next_waking_begins_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rounds = Rounds()
    rounds.error = ValueError("the disk is full")
    rounds.gate.set()
    rounds.background.wake()
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="the disk is full"):
        await rounds.background.settled()
    with pytest.raises(ValueError, match="the disk is full"):
        await rounds.background.rested(1)
    assert caplog.messages == ["nothing more is done: the disk is full"]
    rounds.error = None
    rounds.background.wake()
    await rounds.background.settled()
    assert rounds.num_done == 1


async def test_closing_ends_a_round_in_its_middle() -> None:
    rounds = Rounds()
    rounds.background.wake()
    await until(lambda: rounds.num_begun == 1)
    await rounds.background.close()
    assert rounds.num_done == 0 and not rounds.background.is_working
