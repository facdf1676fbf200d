"""The pace of the machine: what bounds a token, measured once and kept."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.machine.rates import Rates, keep
from app.models import pace as room
from app.models.pace import Pace, PaceBook, time_steps
from app.paths import Paths
from engine.backends.llama_cpp.kv_type import KVShape
from engine.backends.llama_cpp.model_shape import ContextShape, ModelShape

RATES = Rates(10e9, 100e9, 2)


def shape(**changes: Any) -> ModelShape:
    context = ContextShape(
        width=1, widest_layer=1, num_words=1, window_tokens=0, kv=KVShape(1000, frozenset(), True)
    )
    facts: dict[str, Any] = {
        "num_bytes": 1_000_000_000,
        "num_parameters": 2_000_000_000,
        "multiplied": {"Q4_K": 2_000_000_000},
        "read_bytes": 1_000_000_000,
        "num_layers": 10,
        "trained_context": 1000,
        "context": context,
    }
    return ModelShape(**facts | changes)


def test_a_token_waits_for_what_is_slower_memory_or_arithmetic() -> None:
    memory_bound = Pace(rates=RATES, products={"Q4_K": 100e9})
    assert memory_bound.weights_s(shape()) == pytest.approx(0.1)
    computing_bound = Pace(rates=RATES, products={"Q4_K": 10e9})
    assert computing_bound.weights_s(shape()) == pytest.approx(0.2)
    unknown_type = Pace(rates=RATES, products={"Q8_0": 1.0})
    assert unknown_type.weights_s(shape()) == pytest.approx(0.1)


def test_kv_and_layers_cost_time_too() -> None:
    pace = Pace(rates=RATES, products={}, layer_s=0.001)
    # 1,000 numbers of two bytes for each token behind which it is written.
    assert pace.write_s(shape(), 500, "f16") == pytest.approx(0.1 + 500 * 2000 / 10e9 + 0.01)
    assert pace.read_s(shape(), 50) == pytest.approx(1.0)


def test_it_is_measured_once_and_kept_until_the_machine_is_another(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Rates] = []

    def measure(rates: Rates, small_model: Path | None, *, is_busy: bool) -> Pace:
        measured.append(rates)
        return Pace(rates=rates, products={"Q4_K": 5.0}, layer_s=0.5)

    monkeypatch.setattr(room, "measure_pace", measure)
    keep(paths, RATES)
    book = PaceBook(paths, is_busy=lambda: False)
    assert book.kept() is None
    assert book.known(None) == PaceBook(paths).known(None) == PaceBook(paths).kept()
    assert len(measured) == 1
    file = paths.cache / "pace.json"
    values = json.loads(file.read_text())
    file.write_text(json.dumps(values | {"fingerprint": ["another"]}))
    assert PaceBook(paths).kept() is None
    products = {"products": {"Q4_K": 10**400}}
    for text in (
        "{",
        "[" * 100_000,
        json.dumps(values | products),
        json.dumps(values | {"products": []}),
    ):
        file.write_text(text)
        assert PaceBook(paths).kept() is None


def test_what_was_measured_while_others_worked_is_not_kept_for_good(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "measure_rates", lambda: RATES)

    def measure(rates: Rates, small_model: Path | None, *, is_busy: bool) -> Pace:
        return Pace(rates=rates, layer_s=7.0 if is_busy else 1.0)

    monkeypatch.setattr(room, "measure_pace", measure)
    book = PaceBook(paths, is_busy=lambda: True)
    assert book.known(None).layer_s == 7.0
    assert book.kept() == book.known(None)
    assert PaceBook(paths).kept() is None
    assert list(paths.cache.glob("*.json")) == []


@pytest.mark.model
def test_the_steps_of_a_model_are_timed(starter: Path) -> None:
    ticks = iter(range(10_000))
    found, seconds = time_steps(starter, 1, clock=lambda: float(next(ticks)))
    assert found.num_layers == 30
    assert seconds == 1.0


@pytest.mark.parametrize(("is_busy", "threads"), [(True, 1), (False, 2)])
def test_a_layer_costs_what_a_small_model_takes_besides_its_weights(
    monkeypatch: pytest.MonkeyPatch, is_busy: bool, threads: int
) -> None:
    asked: list[int] = []

    def steps(model: Path, num_threads: int, clock: object) -> tuple[ModelShape, float]:
        asked.append(num_threads)
        return shape(), 0.3

    monkeypatch.setattr(room, "time_steps", steps)
    monkeypatch.setattr(room, "MEASURED", ("Q4_K",))
    monkeypatch.setattr(
        "engine.backends.llama_cpp.matrix_product.multiply_adds_per_second",
        lambda kind, num_threads, **more: 10e9 * num_threads,
    )
    pace = room.measure_pace(RATES, Path("m.gguf"), is_busy=is_busy)
    assert asked == [threads]
    assert pace.products == {"Q4_K": 20e9}
    # 2 thousand million multiply-adds take 0.2 s on one thread and 0.1 s on two; the rest is shared
    # by 10 layers.
    assert pace.layer_s == pytest.approx((0.3 - 0.2 / threads) / 10)
    assert room.measure_pace(RATES, None).layer_s == 0
