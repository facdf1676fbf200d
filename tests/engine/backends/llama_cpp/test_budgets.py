"""Hundreds of turns: memory and disk stay within what they were given, and a model comes back."""

import asyncio
import random
import time
from pathlib import Path

import psutil
import pytest

from engine.config import EngineConfig
from engine.kv.segment import Belonging
from engine.loading import LoadedModel, load
from engine.metrics import Timings
from engine.request import RequestOptions
from engine.sampling_params import SamplingParams
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model

MB = 1_000_000
SLACK = 1.02
GREEDY = SamplingParams(temperature=0.0, max_tokens=6, ignore_eos=True, loop_guard=False)


def opened(model: Path, folder: Path, *, ram: int = 4 * MB, disk: int = 8 * MB) -> LoadedModel:
    return load(
        EngineConfig(
            model_path=model,
            context_tokens=1024,
            max_sequences=8,
            max_running=4,
            kv_ram_bytes=ram,
            kv_disk_bytes=disk,
            kv_folder=folder,
        )
    )


async def ask(model: LoadedModel, prompt: list[int], owner: str) -> tuple[list[int], Timings]:
    answer: list[int] = []
    options = RequestOptions(belonging=Belonging(owner=owner, is_durable=True))
    with model.engine.submit(prompt, GREEDY, options) as stream:
        async for output in stream:
            answer += output.token_ids
    assert output.timings is not None
    return answer, output.timings


def disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("num_turns", [120, pytest.param(500, marks=pytest.mark.nightly)])
def test_hundreds_of_turns_stay_within_the_budgets(tmp_path: Path, num_turns: int) -> None:
    model = opened(write_tiny_model(tmp_path / "tiny.gguf"), tmp_path / "kv")
    choose = random.Random(1)
    histories: list[list[int]] = [[] for _ in range(30)]
    resident: list[int] = []

    async def turns() -> None:
        for turn in range(num_turns):
            number = choose.randrange(len(histories))
            if len(histories[number]) > 700:
                histories[number] = []
            prompt = histories[number] + choose.choices(range(3, 260), k=60)
            answer, _ = await ask(model, prompt, f"chat {number}")
            histories[number] = prompt + answer
            usage = model.engine.kv_usage
            assert not usage.notice
            assert usage.ram_bytes <= usage.ram_budget * SLACK
            assert usage.disk_bytes <= usage.disk_budget * SLACK
            if turn % 20 == 19:
                resident.append(psutil.Process().memory_info().rss)
                assert disk_bytes(tmp_path / "kv") <= 8 * MB * SLACK

    asyncio.run(turns())
    usage = model.engine.kv_usage
    assert usage.bytes_written > 4 * MB, "the disk was not used"
    # The first turns fill the budgets; afterwards it neither grows nor creeps.
    half = len(resident) // 2
    assert max(resident[half:]) <= max(resident[:half]) * SLACK + MB
    model.close()


def test_another_model_in_between_costs_a_conversation_nothing(tmp_path: Path) -> None:
    one = write_tiny_model(tmp_path / "one.gguf")
    two = write_tiny_model(tmp_path / "two.gguf", "gemma3")
    prompt = random.Random(2).choices(range(3, 260), k=300)

    def turn(path: Path, prompt: list[int]) -> tuple[list[int], Timings]:
        model = opened(path, tmp_path / "kv")
        deadline = time.monotonic() + 10
        while not model.engine.kv_usage.disk_budget and time.monotonic() < deadline:
            # A model that was never seen is read once to know it.
            time.sleep(0.01)
        answer, timings = asyncio.run(ask(model, prompt, "chat"))
        model.close()
        return prompt + answer, timings

    history, _ = turn(one, prompt)
    _, timings = turn(two, history)
    assert timings.prefilled_tokens == len(history)
    _, timings = turn(one, [*history, 5, 6])
    assert timings.prefilled_tokens == 2 + 1
    assert timings.restored_from == "disk"
