"""Killed at any moment, cancelled and closed at any moment: chats go on and say nothing wrong."""

import asyncio
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from engine.backends.llama_cpp.backend import LlamaBackend
from engine.config import EngineConfig
from engine.errors import EngineDead
from engine.loading import load
from engine.request import FinishReason, RequestOptions
from engine.sampling_params import SamplingParams
from tests.engine.backends.llama_cpp.chat_traffic import ANSWER_TOKENS, history_of, joined
from tests.engine.backends.llama_cpp.model_run import ModelRun, assert_same_up_to_near_ties

TRAFFIC = "tests.engine.backends.llama_cpp.chat_traffic"
ROOT = Path(__file__).parents[4]
ENDINGS = {FinishReason.LENGTH, FinishReason.ABORT}
PATIENCE_S = 90.0


@pytest.mark.parametrize(
    ("num_kills", "num_chats"), [(3, 6), pytest.param(50, 30, marks=pytest.mark.nightly)]
)
def test_killed_under_traffic_every_chat_goes_on_and_no_answer_is_wrong(
    starter: Path, tmp_path: Path, num_kills: int, num_chats: int
) -> None:
    choose = random.Random(3)
    num_restored = 0
    for kill in range(num_kills):
        command = [sys.executable, "-m", TRAFFIC, str(starter), str(tmp_path), str(num_chats)]
        with subprocess.Popen(
            [*command, str(kill)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            # At least one round, so that every start is seen to work.
            num_restored += int(process.stdout.readline())
            time.sleep(choose.uniform(0.0, 1.5))
            process.kill()
            num_restored += sum(int(line) for line in process.stdout if line.endswith("\n"))
    assert num_restored > 0
    check_answers(starter, tmp_path, num_chats)


def check_answers(starter: Path, folder: Path, num_chats: int) -> None:
    """Each is the one that is given with nothing held."""
    config = EngineConfig(model_path=starter, context_tokens=1024, kv_ram_bytes=0)
    backend = LlamaBackend(config)
    num_answers = 0
    for number in range(num_chats):
        history = history_of(folder / f"chat{number}")
        options = RequestOptions(is_reproducible=number % 2 == 1)
        for turn in range(1, len(history), 2):
            num_answers += 1
            prompt = joined(history[:turn])
            backend.kv_memory.clear()
            run = ModelRun(backend, config)
            asked = run.submit(prompt, options, max_tokens=ANSWER_TOKENS)
            run.finish()
            if options.is_reproducible:
                assert run.tokens[asked] == history[turn]
            else:
                assert_same_up_to_near_ties(
                    backend._model, prompt, run.tokens[asked], history[turn]
                )
    backend.close()
    assert num_answers >= num_chats


@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.nightly)])
def test_eight_threads_submit_cancel_and_close_without_a_crash_and_in_order(
    starter: Path, tmp_path: Path, seconds: float
) -> None:
    config = EngineConfig(
        model_path=starter,
        context_tokens=512,
        max_sequences=6,
        max_running=3,
        kv_ram_bytes=20_000_000,
        kv_folder=tmp_path / "kv",
    )
    model = load(config)
    closing = threading.Event()
    faults: list[BaseException] = []
    endings: list[FinishReason] = []

    async def use(seed: int) -> None:
        choose = random.Random(seed)
        while True:
            prompt = choose.choices(range(100, 200), k=choose.randrange(1, 120))
            params = SamplingParams(max_tokens=choose.randrange(1, 12), ignore_eos=True)
            with model.engine.submit(prompt, params) as stream:
                num_read = 0
                async for output in stream:
                    assert output.num_prompt_tokens_read >= num_read, "out of order"
                    num_read = output.num_prompt_tokens_read
                    if output.finish_reason is not None:
                        endings.append(output.finish_reason)
                    elif choose.random() < 0.1:
                        stream.abort()
                    elif choose.random() < 0.03:
                        break
            if choose.random() < 0.1:
                await model.engine.forget(f"owner {seed}")

    def thread(seed: int) -> None:
        try:
            asyncio.run(use(seed))
        except EngineDead:
            if not closing.is_set():
                faults.append(AssertionError("the engine died before it was closed"))
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=thread, args=(seed,)) for seed in range(8)]
    for each in threads:
        each.start()
    # So long at least, and until a busy machine has come to both endings.
    begun = time.monotonic()
    while time.monotonic() < begun + seconds or (
        set(endings) != ENDINGS and not faults and time.monotonic() < begun + PATIENCE_S
    ):
        time.sleep(0.05)
    # Closed while they still use it.
    closing.set()
    model.close()
    for each in threads:
        each.join(timeout=10)
        assert not each.is_alive(), "a reader hangs"
    assert not faults, faults[0]
    assert set(endings) == ENDINGS
