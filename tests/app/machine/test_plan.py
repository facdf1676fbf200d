"""What will run, and why nothing better does."""

from dataclasses import replace
from pathlib import Path

from app.machine.gpu import Gpu
from app.machine.plan import about_gpus, plan_of
from engine.config import EngineConfig
from tests.fakes_machine import KV, PROCESSOR

CONFIG = EngineConfig(model_path=Path("m.gguf"))
GPU = Gpu(name="RTX 3060", maker="NVIDIA", memory_bytes=12 * 10**9, driver="550.1")


def test_threads_adapt_unless_they_were_chosen() -> None:
    plan = plan_of(CONFIG, PROCESSOR, [], KV, "llama")
    assert plan.sentence.startswith("the backend llama on Abacus 2, with up to 2 threads")
    assert "context of 8,192 tokens, KV kept as f16" in plan.sentence
    chosen = plan_of(replace(CONFIG, threads=1), PROCESSOR, [], KV, "llama")
    assert "with 1 thread;" in chosen.sentence


def test_nothing_better_is_nothing_to_say() -> None:
    assert plan_of(CONFIG, PROCESSOR, [], KV, "llama").why_not_better == ""


def test_what_lies_idle_is_said() -> None:
    processor = replace(PROCESSOR, has=("AVX", "AVX2", "AVX512"))
    reason = plan_of(CONFIG, processor, [GPU], KV, "llama").why_not_better
    assert "RTX 3060 is not used" in reason and "not AVX512" in reason


def test_graphics_processors_are_told_with_memory_and_driver() -> None:
    assert about_gpus([GPU]) == "RTX 3060, 12 GB, driver 550.1"
    assert about_gpus([Gpu(name="A", maker="NVIDIA")]) == "A, no driver that answers"
    assert about_gpus([]).startswith("no graphics processor was found")
