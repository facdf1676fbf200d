"""One look at a time, and what it found is kept."""

import asyncio
from time import time

import pytest

from app.machine import examination
from app.machine.this_machine import ThisMachine
from app.paths import Paths
from engine.backends.llama_cpp import matrix_product
from engine.errors import UsageError
from tests.fakes_machine import RATES
from tests.fakes_model import FakeEngine, FakeModelServices


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "known_rates", lambda paths, again: RATES)
    monkeypatch.setattr(matrix_product, "multiply_adds_per_second", lambda name, threads: 5e10)


@pytest.fixture
async def machine(paths: Paths) -> ThisMachine:
    return FakeModelServices(paths, FakeEngine(script="Good day")).machine


async def test_what_was_found_is_kept(machine: ThisMachine) -> None:
    assert machine.findings is None and machine.report() == ""
    before = time()
    found = await machine.look()
    assert machine.findings is found and found.roofline is not None
    assert before <= found.looked_at <= time()
    assert "Inglenook, report on a machine" in machine.report()


async def test_two_looks_at_once_would_measure_each_other(machine: ThisMachine) -> None:
    first = asyncio.ensure_future(machine.look())
    await asyncio.sleep(0)
    with pytest.raises(UsageError, match="being measured already"):
        await machine.look()
    await first
    assert await machine.look() is machine.findings


async def test_a_self_test_stands_in_the_report(machine: ThisMachine) -> None:
    await machine.look()
    assert "Self-test" not in machine.report()
    await machine.try_out()
    assert "Self-test" in machine.report()
