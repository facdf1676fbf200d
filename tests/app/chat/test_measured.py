"""What several requests cost together."""

from dataclasses import fields

import pytest

from app.chat.measured import together
from engine.metrics import Timings

FIRST = Timings(
    prefilled_tokens=100,
    cached_tokens=20,
    restored_tokens=5,
    restored_from="ram",
    restore_ms=3.0,
    completion_tokens=11,
    ttft_ms=400.0,
    tpot_ms=10.0,
    queue_ms=1.0,
    finish="end",
    is_reproducible=True,
)
SECOND = Timings(
    prefilled_tokens=60,
    restored_tokens=7,
    restored_from="disk",
    restore_ms=2.0,
    completion_tokens=31,
    ttft_ms=90.0,
    tpot_ms=20.0,
    queue_ms=2.0,
    finish="max_tokens",
)


def test_counts_and_waits_add_up() -> None:
    both = together([FIRST, SECOND])
    assert (both.prefilled_tokens, both.cached_tokens, both.restored_tokens) == (160, 20, 12)
    assert both.prompt_tokens == FIRST.prompt_tokens + SECOND.prompt_tokens
    assert (both.restored_from, both.restore_ms, both.queue_ms) == ("disk", 5.0, 3.0)
    assert both.completion_tokens == 42


def test_the_pace_is_that_of_all_tokens_and_the_wait_that_of_the_first() -> None:
    both = together([FIRST, SECOND])
    # 10 tokens at 10 ms and 30 at 20 ms came after the first ones.
    assert both.tpot_ms == pytest.approx(17.5)
    assert (both.ttft_ms, both.finish, both.is_reproducible) == (400.0, "max_tokens", False)


def test_one_alone_is_itself_and_none_is_nothing() -> None:
    every = Timings(
        **{
            field.name: getattr(FIRST, field.name) or type(getattr(FIRST, field.name))(2)
            for field in fields(Timings)
        }
    )
    assert together([every]) == every
    assert together([]) == Timings()
