"""The rates of this machine: measured once, kept, and measured again on another machine."""

import json
import time

import pytest

from app.machine import rates as module
from app.machine.rates import Rates, kept_rates, known_rates, measure_rates, memory_bandwidth
from app.paths import Paths


class Others:
    """How many cores other programs keep busy."""

    cores = 0.0

    def __enter__(self) -> "Others":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def others(monkeypatch: pytest.MonkeyPatch) -> type[Others]:
    monkeypatch.setattr(module, "Others", Others)
    monkeypatch.setattr(Others, "cores", 0.0)
    return Others


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


def test_what_was_measured_beside_others_is_measured_again_later(
    paths: Paths, measured: list[Rates], others: type[Others], monkeypatch: pytest.MonkeyPatch
) -> None:
    others.cores = 1.5
    first = known_rates(paths)
    assert known_rates(paths) == first, "not at every look"
    others.cores = 0.0
    monkeypatch.setattr(module, "time", lambda: time.time() + 2 * module.RETRY_S)
    second = known_rates(paths)
    assert second != first
    known = module.kept(paths)
    assert known is not None and not known.is_busy


def test_a_busy_moment_does_not_take_back_what_was_reached(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, others: type[Others]
) -> None:
    monkeypatch.setattr(module, "measure_rates", lambda: Rates(1e10, 3e10, 2))
    known_rates(paths)
    others.cores = 1.5
    monkeypatch.setattr(module, "measure_rates", lambda: Rates(2e10, 5e9, 2))
    assert known_rates(paths, again=True) == Rates(2e10, 3e10, 2)
    known = module.kept(paths)
    assert known is not None and not known.is_busy
    others.cores = 0.0
    assert known_rates(paths, again=True) == Rates(2e10, 5e9, 2), "a quiet look is believed"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "[" * 100_000,
        json.dumps({"fingerprint": None}),
        json.dumps({"fingerprint": module.fingerprint(), "rates": {"speed": 1}}),
        json.dumps(
            {
                "fingerprint": module.fingerprint(),
                "rates": {"read_bytes_per_s": 0, "multiply_adds_per_s": 1, "num_threads": 1},
                "is_busy": False,
                "at": 0.0,
            }
        ),
        json.dumps(
            {
                "fingerprint": module.fingerprint(),
                "rates": {"read_bytes_per_s": 1, "multiply_adds_per_s": 1, "num_threads": 1},
                "is_busy": False,
                "at": 10**400,
            }
        ),
    ],
    ids=lambda text: text[:20],
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
