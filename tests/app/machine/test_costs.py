"""What reading and writing cost: counted over what was really read and written."""

import pytest

from app.machine.costs import LEAST_READ, MOST_READ, Work, measure_costs, num_to_read
from app.machine.rates import Rates
from tests.fakes_machine import RATES
from tests.fakes_model import FakeEngine, fake_chat_model


def test_costs_are_told_for_a_thousand_tokens() -> None:
    work = Work(num_tokens=500, seconds=2.0, processor_seconds=3.0, joules=1800.0)
    assert work.tokens_per_second == 250
    assert work.processor_seconds_per_1000 == 6.0
    assert work.watt_hours_per_1000 == 1.0


def test_energy_that_nobody_tells_is_not_made_up() -> None:
    assert Work(num_tokens=5, seconds=1, processor_seconds=1).watt_hours_per_1000 is None


def test_a_large_model_reads_less_and_a_small_one_no_more_than_says_something() -> None:
    assert num_to_read(70_000_000_000, RATES) == LEAST_READ
    assert num_to_read(1_000_000, RATES) == MOST_READ
    assert LEAST_READ < num_to_read(500_000_000, Rates(1e10, 2e10, 2)) < MOST_READ


async def test_the_first_token_belongs_to_the_prompt() -> None:
    model = fake_chat_model(FakeEngine(script="abcde"))
    costs = await measure_costs(model.loaded, RATES)
    assert costs.writing.num_tokens == 4
    assert costs.reading.num_tokens == MOST_READ


async def test_a_model_that_writes_nothing_costs_nothing() -> None:
    model = fake_chat_model(FakeEngine(script=""))
    costs = await measure_costs(model.loaded, RATES)
    assert costs.writing.num_tokens == 0
    assert costs.writing.processor_seconds_per_1000 == pytest.approx(0, abs=1000)
