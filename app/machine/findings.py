"""All that was found out about a machine in one go, as a value."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.machine.check import Check
from app.machine.costs import Costs, Work
from app.machine.gpu import Gpu
from app.machine.kv_costs import KVCosts
from app.machine.plan import Plan
from app.machine.predictions import Prediction
from app.machine.processor import Processor
from app.machine.rates import Rates
from app.machine.roofline import Roofline
from app.machine.storage import DiskFacts, MemoryFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """`looked_at`: seconds since 1970. `memory_bandwidth`: bytes a second. What hangs on a model is
    None where it could not be used, and what hangs on llama.cpp where that could not be loaded; a
    check says why."""

    looked_at: float
    checks: Sequence[Check]
    memory_bandwidth: float
    rates: Rates | None
    predictions: Sequence[Prediction]
    processor: Processor | None
    memory: MemoryFacts
    gpus: Sequence[Gpu]
    disk: DiskFacts | None = None
    plan: Plan | None = None
    kv: KVCosts | None = None
    costs: Costs | None = None
    roofline: Roofline | None = None

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "looked_at": self.looked_at,
            "backend": "llama" if self.plan is None else self.plan.backend,
            "checks": [asdict(check) for check in self.checks],
            "memory_bandwidth": self.memory_bandwidth,
            "rates": None if self.rates is None else asdict(self.rates),
            "predictions": [asdict(prediction) for prediction in self.predictions],
            "processor": None if self.processor is None else _processor(self.processor),
            "memory": asdict(self.memory),
            "disk": None if self.disk is None else asdict(self.disk),
            "gpus": [asdict(gpu) for gpu in self.gpus],
            "plan": None if self.plan is None else asdict(self.plan),
            "kv": None if self.kv is None else _kv(self.kv),
            "costs": None
            if self.costs is None
            else {"reading": _work(self.costs.reading), "writing": _work(self.costs.writing)},
            "roofline": None if self.roofline is None else asdict(self.roofline),
        }


def _processor(processor: Processor) -> dict[str, Any]:
    return asdict(processor) | {"unused": list(processor.unused)}


def _kv(kv: KVCosts) -> dict[str, Any]:
    return asdict(kv) | {
        "formula": kv.formula,
        "bytes_per_conversation": kv.bytes_per_conversation,
        "num_in_cells": kv.num_in_cells,
        "num_in_ram": kv.num_in_ram,
        "num_on_disk": kv.num_on_disk,
    }


def _work(work: Work) -> dict[str, Any]:
    return asdict(work) | {
        "tokens_per_second": work.tokens_per_second,
        "processor_seconds_per_1000": work.processor_seconds_per_1000,
        "watt_hours_per_1000": work.watt_hours_per_1000,
    }
