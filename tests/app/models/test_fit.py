"""Whether a model fits: the verdict follows from figures, and the figures agree with each other."""

from pathlib import Path

import pytest

from app.machine.rates import Rates
from app.models.catalog import in_catalog
from app.models.fit import (
    Room,
    Verdict,
    fit,
    fitting_context,
    largest_fitting,
    size_verdict,
)
from app.models.pace import Pace
from engine.backends.llama_cpp.model_shape import ModelShape
from engine.config import EngineConfig

GB = 10**9
PACE = Pace(rates=Rates(20e9, 200e9, 4), products={"Q4_K": 100e9}, layer_s=0.0001)


def shape(name: str = "qwen3-4b", quantization: str = "Q4_K_M") -> ModelShape:
    model = in_catalog(name)
    assert model is not None
    return model.shape(quantization)


def config(context: int | None = None, kv_type: str = "auto") -> EngineConfig:
    return EngineConfig(model_path=Path("m.gguf"), context_tokens=context, kv_type=kv_type)


def room(free: float, total: float = 64 * GB) -> Room:
    return Room(int(free), int(total))


def test_weights_kv_and_buffers_are_all_counted() -> None:
    model = shape()
    small, large = (model.memory_bytes(config(n, "f16")) for n in (4096, 8192))
    # 36 layers, 8 heads of 128 numbers, keys and values of two bytes; which cells a token sees.
    assert large - small == 4096 * (36 * 8 * 128 * 2 * 2 + 512 * 2)
    assert small > 2.5 * GB + 4096 * 36 * 8 * 128 * 4
    assert model.memory_bytes(config(8192, "q8_0")) < large


@pytest.mark.parametrize(
    ("free", "total", "verdict", "words"),
    [
        (32 * GB, 64 * GB, Verdict.FITS, "and 32 GB are free"),
        (4.2 * GB, 64 * GB, Verdict.TIGHT, "of the 4.2 GB that are free"),
        (3 * GB, 64 * GB, Verdict.NOT, "3 GB are free: close other programs"),
        (3 * GB, 3 * GB, Verdict.NOT, "this machine has 3 GB in all"),
    ],
)
def test_the_verdict_says_why(free: float, total: float, verdict: Verdict, words: str) -> None:
    found = fit(shape(), config(8192), room(free, total))
    assert found.verdict is verdict
    assert words in found.why and "with a context of 8,192 tokens it takes" in found.why
    assert found.tokens_per_s is None


def test_a_speed_is_told_where_the_pace_is_known() -> None:
    found = fit(shape(), config(8192, "f16"), room(32 * GB), PACE)
    model = shape()
    kv_s = 4096 * 147_456 / 20e9
    weights_s = max(model.read_bytes / 20e9, sum(model.multiplied.values()) / 100e9)
    assert found.tokens_per_s == pytest.approx(1 / (weights_s + kv_s + 36 * 0.0001))
    assert found.first_token_s == pytest.approx(sum(model.multiplied.values()) * 512 / 200e9)


def test_more_memory_never_makes_the_verdict_worse() -> None:
    order = [Verdict.NOT, Verdict.TIGHT, Verdict.FITS]
    verdicts = [fit(shape(), config(), room(free * GB)).verdict for free in range(1, 30)]
    assert verdicts == sorted(verdicts, key=order.index)


def test_the_largest_fitting_one_that_fits_is_the_largest_of_those() -> None:
    sizes = [(name, shape(name)) for name in ("qwen3-4b", "qwen3-8b", "qwen3-14b")]
    assert largest_fitting(sizes, config(), room(8 * GB)) == "qwen3-8b"
    assert largest_fitting(sizes, config(), room(1 * GB)) == ""


def test_a_smaller_context_is_offered_only_where_it_helps() -> None:
    assert fitting_context(shape(), config(65536, "f16"), room(5 * GB)) == 8192
    assert fitting_context(shape(), config(8192), room(1 * GB)) is None
    assert fitting_context(shape(), config(2048), room(32 * GB)) is None


def test_of_a_mixture_only_what_is_asked_is_read() -> None:
    mixture, dense = shape("qwen3-30b-a3b"), shape("qwen3-14b")
    assert mixture.num_bytes > dense.num_bytes
    assert PACE.write_s(mixture, 0, "f16") < PACE.write_s(dense, 0, "f16") / 2


def test_of_what_only_the_size_is_known_the_size_decides() -> None:
    verdicts = [size_verdict(size * GB, room(10 * GB)) for size in (2, 8, 9)]
    assert verdicts == [Verdict.FITS, Verdict.TIGHT, Verdict.NOT]
