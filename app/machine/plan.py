"""What will run here: which backend, on what, with how many threads and how much context."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.amounts import bytes_in_words, counted
from app.machine.gpu import Gpu, why_not_used
from app.machine.kv_costs import KVCosts
from app.machine.processor import Processor
from engine.config import EngineConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`why_not_better`: what this machine has and the backend does not use; mostly empty."""

    backend: str
    device: str
    threads: int
    is_adapting: bool
    context_tokens: int
    kv_type: str
    why_not_better: str

    @property
    def sentence(self) -> str:
        threads = counted(self.threads, "thread")
        if self.is_adapting:
            threads = f"up to {threads}, as many as are fastest at the moment"
        return (
            f"the backend {self.backend} on {self.device}, with {threads}; a context of"
            f" {self.context_tokens:,} tokens, KV kept as {self.kv_type}"
        )


def plan_of(
    config: EngineConfig, processor: Processor, gpus: Sequence[Gpu], kv: KVCosts, backend: str
) -> Plan:
    reasons = [why_not_used(gpus)]
    if processor.unused:
        reasons.append(processor.about_build)
    return Plan(
        backend=backend,
        device=processor.name,
        threads=config.threads or processor.num_usable,
        is_adapting=config.threads is None,
        context_tokens=kv.context_tokens,
        kv_type=kv.kv_type,
        why_not_better="; ".join(reason for reason in reasons if reason),
    )


def about_gpus(gpus: Sequence[Gpu]) -> str:
    """One sentence on each, or that there is none."""
    if not gpus:
        return "no graphics processor was found; the processor computes"
    told = []
    for gpu in gpus:
        memory = "" if gpu.memory_bytes is None else f", {bytes_in_words(gpu.memory_bytes)}"
        driver = f", driver {gpu.driver}" if gpu.driver else ", no driver that answers"
        told.append(f"{gpu.name}{memory}{driver}")
    return "; ".join(told)
