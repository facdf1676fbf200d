"""A process in which chats go on, each where its file says it is, until it is killed.

python -m tests.engine.backends.llama_cpp.chat_traffic MODEL FOLDER NUM_CHATS SEED
"""

import asyncio
import json
import random
import sys
from pathlib import Path

from engine.config import EngineConfig
from engine.kv.segment import Belonging
from engine.loading import LoadedModel, load
from engine.request import RequestOptions
from engine.sampling_params import SamplingParams

ANSWER_TOKENS = 8
MAX_HISTORY = 800
GREEDY = SamplingParams(
    temperature=0.0, max_tokens=ANSWER_TOKENS, ignore_eos=True, loop_guard=False
)


def history_of(path: Path) -> list[list[int]]:
    """Prompts and answers in turn; a last line that was cut short does not count."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def joined(history: list[list[int]]) -> list[int]:
    return [token for part in history for token in part]


def question(number: int, turn: int) -> list[int]:
    choose = random.Random(1000 * number + turn)
    start = [] if turn else random.Random(7).choices(range(100, 260), k=280)
    return start + choose.choices(range(100, 260), k=choose.randrange(5, 60))


async def chat(model: LoadedModel, folder: Path, number: int) -> int:
    """One more turn. Gives how many tokens came back from the store."""
    path = folder / f"chat{number}"
    history = history_of(path)
    if len(joined(history)) > MAX_HISTORY:
        return 0
    asked = question(number, len(history) // 2)
    options = RequestOptions(
        belonging=Belonging(owner=path.name, is_durable=True),
        is_reproducible=number % 2 == 1,
    )
    answer: list[int] = []
    restored = 0
    with model.engine.submit(joined(history) + asked, GREEDY, options) as stream:
        async for output in stream:
            answer += output.token_ids
            if output.timings is not None:
                restored = output.timings.restored_tokens
    with path.open("a") as file:
        file.write(f"{json.dumps(asked)}\n{json.dumps(answer)}\n")
    return restored


async def traffic(model_path: Path, folder: Path, num_chats: int, seed: int) -> None:
    config = EngineConfig(
        model_path=model_path,
        context_tokens=1024,
        max_sequences=8,
        max_running=2,
        kv_ram_bytes=60_000_000,
        kv_disk_bytes=300_000_000,
        kv_folder=folder / "kv",
    )
    model = await asyncio.to_thread(load, config)
    choose = random.Random(seed)
    print("ready", flush=True)
    while True:
        numbers = choose.sample(range(num_chats), min(3, num_chats))
        print(sum(await asyncio.gather(*(chat(model, folder, n) for n in numbers))), flush=True)


if __name__ == "__main__":
    asyncio.run(traffic(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
