"""A machine that was looked at already: its findings are made up, and right in themselves."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from app.machine.check import Check
from app.machine.costs import Costs, Work
from app.machine.findings import Findings
from app.machine.gpu import Gpu
from app.machine.kv_costs import KVCosts
from app.machine.plan import plan_of
from app.machine.predictions import predict
from app.machine.processor import Processor
from app.machine.rates import Rates
from app.machine.roofline import Roofline, roofline_of
from app.machine.storage import DiskFacts, MemoryFacts
from engine.backends.llama_cpp.gguf_header import Tensor
from engine.backends.llama_cpp.matrix_product import TYPES as KINDS
from engine.backends.llama_cpp.weights import Weights
from engine.config import EngineConfig
from engine.errors import InglenookError

RATES = Rates(read_bytes_per_s=2e10, multiply_adds_per_s=4e10, num_threads=2)
PROCESSOR = Processor(
    name="Abacus 2",
    num_cores=2,
    num_usable=2,
    has=("AVX", "AVX2"),
    uses=("AVX", "AVX2"),
    variant="",
    build="0.1 (abc)",
)
KV = KVCosts(
    kv_type="f16",
    num_layers=30,
    num_heads=3,
    key_size=64,
    value_size=64,
    bytes_per_number=2.0,
    bytes_per_token=23_040,
    is_exact=True,
    context_tokens=8192,
    ram_budget=10**9,
    disk_budget=10**10,
    weighed_bytes_per_token=23_058.0,
)
COSTS = Costs(
    reading=Work(num_tokens=400, seconds=2.0, processor_seconds=4.0, joules=72.0),
    writing=Work(num_tokens=31, seconds=0.5, processor_seconds=1.0, joules=18.0),
)
WEIGHTS = Weights(
    (
        Tensor("token_embd.weight", (512, 1000), KINDS["Q8_0"]),
        Tensor("blk.0.ffn_up.weight", (512, 200_000), KINDS["Q4_1"]),
        Tensor("blk.0.attn_norm.weight", (512,), KINDS["F32"]),
    )
)


def some_roofline() -> Roofline:
    return roofline_of("A model", WEIGHTS, COSTS, RATES, 5e10, 512)


def some_findings() -> Findings:
    return Findings(
        looked_at=datetime(2026, 11, 30, 17, 5).timestamp(),
        checks=[
            Check("machine", True, "Linux x86_64, 2 cores, 8 GB of memory"),
            Check("cache", False, "3 damaged <b>pieces</b>", "run `inglenook doctor --repair`"),
        ],
        memory_bandwidth=RATES.read_bytes_per_s,
        rates=RATES,
        predictions=predict(RATES, 4_000_000_000),
        processor=PROCESSOR,
        memory=MemoryFacts(total=8_000_000_000, available=4_000_000_000, swap_total=0, swap_used=0),
        gpus=[Gpu(name="Pixel 9", maker="NVIDIA", memory_bytes=2**33, driver="550.1")],
        disk=DiskFacts(place="/models", total=10**12, free=10**11, read_bytes_per_s=1e9),
        plan=plan_of(EngineConfig(model_path=Path("m.gguf")), PROCESSOR, [], KV, "llama"),
        kv=KV,
        costs=COSTS,
        roofline=some_roofline(),
    )


class FakeMachine:
    """Finds the same each time, and counts how often it was asked."""

    def __init__(self) -> None:
        self.findings: Findings | None = None
        self.trials: list[Check] | None = None
        self.num_looks = 0
        self.error: InglenookError | None = None

    async def look(self, *, is_repair: bool = False, is_again: bool = False) -> Findings:
        if self.error is not None:
            raise self.error
        self.num_looks += 1
        self.findings = replace(some_findings(), memory_bandwidth=1e9 * self.num_looks)
        return self.findings

    async def try_out(self) -> list[Check]:
        self.trials = [Check("write", True, "16 tokens in 0.3 s")]
        return self.trials

    def report(self) -> str:
        return "" if self.findings is None else f"report {self.num_looks}"
