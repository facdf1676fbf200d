"""The rates of this machine: measured once, kept, and measured again on another machine."""

import json

import pytest

from app.machine import rates as module
from app.machine.rates import Rates, kept_rates, known_rates, measure_rates, memory_bandwidth
from app.paths import Paths

SOME = Rates(1e10, 2e10, 2)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Rates]:
    """What was measured, each time something other."""
    found: list[Rates] = []

    def measure() -> Rates:
        found.append(Rates(1e10, 1e9 * (len(found) + 1), 2))
        return found[-1]

    monkeypatch.setattr(module, "measure_rates", measure)
    return found


def test_they_are_measured_once_and_then_known(paths: Paths, measured: list[Rates]) -> None:
    assert kept_rates(paths) is None
    first = known_rates(paths)
    assert known_rates(paths) == first == kept_rates(paths)
    assert len(measured) == 1


def test_they_are_measured_again_on_request(paths: Paths, measured: list[Rates]) -> None:
    first = known_rates(paths)
    second = known_rates(paths, again=True)
    assert second != first and known_rates(paths) == second


def test_those_of_another_machine_do_not_count(
    paths: Paths, measured: list[Rates], monkeypatch: pytest.MonkeyPatch
) -> None:
    known_rates(paths)
    monkeypatch.setattr(module, "cpu_name", lambda: "another one")
    assert kept_rates(paths) is None
    known_rates(paths)
    assert len(measured) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        json.dumps({"fingerprint": None}),
        json.dumps({"fingerprint": module.fingerprint(), "rates": {"speed": 1}}),
        json.dumps(
            {
                "fingerprint": module.fingerprint(),
                "rates": {"read_bytes_per_s": 0, "multiply_adds_per_s": 1, "num_threads": 1},
            }
        ),
    ],
)
def test_a_damaged_file_is_as_none(paths: Paths, measured: list[Rates], text: str) -> None:
    module.place(paths).write_text(text)
    assert known_rates(paths) == measured[0]
    assert kept_rates(paths) == measured[0]


def test_more_bytes_a_second_than_a_disk_and_fewer_than_a_cache() -> None:
    assert 1e8 < memory_bandwidth(1, 2**24) < 1e13


def test_both_rates_are_measured_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_BYTES", 2**22)
    rates = measure_rates()
    assert rates.read_bytes_per_s > 1e8
    # The slowest processor that this runs on makes some hundred million products a second.
    assert rates.multiply_adds_per_s > 1e8
    assert rates.num_threads >= 1
