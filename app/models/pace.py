"""How fast a model of given measures writes and reads here, before it is there.

    a token written   for each type of weights, what is slower: to read them from memory, or to
                      multiply each of them once; the KV of the conversation, read; and what each
                      layer costs besides, measured with a small model
    a text read       a multiply-add for each weight and token

That is the roofline model (Williams, Waterman and Patterson, doi 10.1145/1498765.1498785) with the
fixed costs of a step. The products are llama.cpp's own, by the type of the weights.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import psutil

from app.machine.rates import Rates, fingerprint, kept_rates, known_rates, measure_rates
from app.paths import Paths
from app.private_file import write_private
from engine.backends.llama_cpp.kv_type import KVType
from engine.backends.llama_cpp.model_shape import ModelShape

FORM = 1
"""To be raised when something is measured in another way."""
MEASURED = ("Q4_0", "Q4_1", "Q4_K", "Q5_K", "Q6_K", "Q8_0", "F16")
"""The types that are measured at once; of others it is taken that memory is what they wait for."""
PRODUCT_S = 0.12
BUSY_SHARE = 0.25
"""Of all cores: where others take more, what is measured is not kept for good."""
LOOK_S = 0.3
WARM_STEPS, TIMED_STEPS = 8, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """`products`: multiply-adds a second with one column, by the type of the weights. `layer_s`:
    what a layer costs for each token besides. `num_bytes` below are read from memory."""

    rates: Rates
    products: Mapping[str, float] = field(default_factory=dict)
    layer_s: float = 0.0

    def weights_s(self, shape: ModelShape) -> float:
        """Seconds for the weights of one token that is written."""
        total = sum(shape.multiplied.values()) or 1
        seconds = 0.0
        for kind, number in shape.multiplied.items():
            reading = shape.read_bytes * number / total / self.rates.read_bytes_per_s
            product = self.products.get(kind)
            seconds += reading if product is None else max(reading, number / product)
        return seconds

    def write_s(self, shape: ModelShape, num_kv_tokens: int, kv_type: KVType) -> float:
        """Seconds for a token that is written behind so many."""
        kv_bytes = num_kv_tokens * shape.context.kv.bytes_per_token(kv_type)
        return (
            self.weights_s(shape)
            + kv_bytes / self.rates.read_bytes_per_s
            + shape.num_layers * self.layer_s
        )

    def read_s(self, shape: ModelShape, num_tokens: int) -> float:
        """Seconds until a text of so many tokens is read and the answer begins."""
        weights = sum(shape.multiplied.values())
        return weights * num_tokens / self.rates.multiply_adds_per_s


class PaceBook:
    """The pace of this machine, measured once and kept in the cache. Owned by the event loop; what
    blocks is said."""

    def __init__(self, paths: Paths, is_busy: Callable[[], bool] | None = None) -> None:
        self._paths = paths
        self._file = paths.cache / "pace.json"
        self._is_busy = is_busy or machine_is_busy
        self._rough: Pace | None = None

    def kept(self) -> Pace | None:
        """Without measuring. None: it is not known yet."""
        rates = kept_rates(self._paths)
        if rates is None:
            return self._rough
        with suppress(
            OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError
        ):
            values: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
            if values["fingerprint"] == _fingerprint():
                products = {str(name): float(each) for name, each in values["products"].items()}
                return Pace(rates=rates, products=products, layer_s=float(values["layer_s"]))
        return self._rough

    def known(self, small_model: Path | None) -> Pace:
        """That which is kept, or else measured now with a small model: blocks for some seconds. On
        a busy machine it holds for this process only, so that a quiet moment can do better.

        Raises a ModelError when that model cannot be used.
        """
        kept = self.kept()
        if kept is not None:
            return kept
        is_busy = self._is_busy()
        rates = kept_rates(self._paths) or (
            measure_rates() if is_busy else known_rates(self._paths)
        )
        pace = measure_pace(rates, small_model, is_busy=is_busy)
        if is_busy:
            self._rough = pace
            return pace
        values = {"fingerprint": _fingerprint()} | asdict(pace)
        del values["rates"]
        with suppress(OSError):
            write_private(self._file, json.dumps(values, indent=1) + "\n")
        return pace


def machine_is_busy() -> bool:
    """Whether programs take much of the processor now. Blocks for a moment."""
    return bool(psutil.cpu_percent(interval=LOOK_S) > 100 * BUSY_SHARE)


def measure_pace(rates: Rates, small_model: Path | None, *, is_busy: bool = False) -> Pace:
    """Without a small model a layer costs nothing besides, so what is told is a bound.

    `is_busy`: others take much of the processor. Then the steps are those of one thread, in its
    processor time: threads that wait for each other on busy cores take a hundred times longer.
    """
    from engine.backends.llama_cpp.matrix_product import multiply_adds_per_second

    each = {
        kind: multiply_adds_per_second(kind, 1, num_tokens=1, seconds=PRODUCT_S)
        for kind in MEASURED
    }
    products = {kind: rates.num_threads * product for kind, product in each.items()}
    pace = Pace(rates=rates, products=products)
    if small_model is None:
        return pace
    if is_busy:
        shape, seconds = time_steps(small_model, 1, thread_time)
        rest = seconds - Pace(rates=rates, products=each).weights_s(shape)
    else:
        shape, seconds = time_steps(small_model, rates.num_threads, perf_counter)
        rest = seconds - pace.weights_s(shape)
    return Pace(rates=rates, products=products, layer_s=max(0.0, rest) / max(1, shape.num_layers))


def time_steps(
    model: Path, num_threads: int, clock: Callable[[], float]
) -> tuple[ModelShape, float]:
    """The measures of a model and the seconds of its steps with one token, the median of many."""
    from engine.backends.llama_cpp.backend import LlamaBackend
    from engine.backends.llama_cpp.chat_file import check_chat_file
    from engine.backends.llama_cpp.gguf_shape import shape_of
    from engine.backends.llama_cpp.step_batch import Part
    from engine.config import EngineConfig

    shape = shape_of(check_chat_file(model))
    config = EngineConfig(
        model_path=model,
        context_tokens=256,
        max_running=1,
        max_sequences=1,
        max_batch_tokens=32,
        threads=num_threads,
    )
    backend = LlamaBackend(config)
    try:
        memory = backend.kv_memory
        times = []
        for position in range(WARM_STEPS + TIMED_STEPS):
            began = clock()
            memory.decode([Part(0, position, [1], 1)])
            memory.logits(1)
            times.append(clock() - began)
    finally:
        backend.close()
    return shape, median(times[WARM_STEPS:])


def _fingerprint() -> list[Any]:
    return [FORM, *fingerprint()]
