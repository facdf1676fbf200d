"""Whether what the app promises works here: it writes, reads, remembers, keeps a form, stores.

Ten seconds at most, once the model is loaded; each part has its own verdict. Nothing of it stays.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from app.amounts import counted
from app.chat.chat_model import ChatModel
from app.chat.written import read_whole
from app.history.conversations import Conversations
from app.history.database import Database
from app.machine.check import Check, Failed
from app.machine.home import Home
from app.machine.kv_costs import random_prompt
from engine.errors import InglenookError
from engine.guided.grammar import Grammar, GrammarKind
from engine.guided.validator import AnswerValidator
from engine.kv.segment import Belonging
from engine.request import GRID_TOKENS, RequestOptions, RequestOutput
from engine.sampling_params import SamplingParams

MOST_SECONDS = 10.0
TOO_SLOW = "choose a smaller model, or close other programs"
REPORT_IT = "run `inglenook doctor --report`, and send what it says with a report of this fault"
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"works": {"type": "boolean"}, "number": {"enum": [1, 2, 3]}},
        "required": ["works", "number"],
        "additionalProperties": False,
    }
)
OURS = Belonging(owner="tmp-self-test")
"""Of nothing that is asked here anything stays."""
_WORDS = "Ein Gedächtnis aus Öl: 記憶 🙂"


class SelfTest:
    """One run. Owned by the event loop."""

    def __init__(self, home: Home, model: ChatModel) -> None:
        self._home = home
        self._model = model
        self._ends = time.monotonic() + MOST_SECONDS

    def parts(self) -> list[tuple[str, Callable[[], Awaitable[str]]]]:
        return [
            ("store", self.store),
            ("write", self.write),
            ("read", self.read),
            ("form", self.form),
            ("remember", self.remember),
        ]

    async def run(self) -> list[Check]:
        try:
            return [await self._run(name, part) for name, part in self.parts()]
        finally:
            await self._model.loaded.engine.forget(OURS.owner)

    async def _run(self, name: str, part: Callable[[], Awaitable[str]]) -> Check:
        try:
            async with asyncio.timeout(max(0.0, self._ends - time.monotonic())):
                return Check(name, True, await part())
        except TimeoutError:
            said = f"not finished when the {MOST_SECONDS:g} s were over"
            return Check(name, False, said, TOO_SLOW)
        except Failed as failed:
            return Check(name, False, failed.message, failed.remedy)
        except InglenookError as error:
            return Check(name, False, str(error), REPORT_IT)

    async def store(self) -> str:
        """A history of its own, beside the user's: written, closed, and read again."""
        return await asyncio.to_thread(_store_and_read, self._home.paths.data)

    async def write(self) -> str:
        began = time.perf_counter()
        outputs = await self._ask(random_prompt(self._model.loaded, 8), 16)
        count = sum(len(output.token_ids) for output in outputs)
        if not count:
            raise Failed("the model wrote nothing", REPORT_IT)
        return f"{counted(count, 'token')} in {time.perf_counter() - began:.1f} s"

    async def read(self) -> str:
        prompt = random_prompt(self._model.loaded, 64)
        began = time.perf_counter()
        options = RequestOptions(belonging=OURS, num_candidates=1)
        outputs = await self._ask(prompt, 1, options)
        num_read = max(output.num_prompt_tokens_read for output in outputs)
        if num_read != len(prompt):
            raise Failed(f"{num_read} of {len(prompt)} tokens were read", REPORT_IT)
        return f"{counted(num_read, 'token')} in {time.perf_counter() - began:.1f} s"

    async def form(self) -> str:
        """An answer in JSON, judged by a validator that did not take part in writing it."""
        guidance = await self._model.guidance(Grammar(GrammarKind.JSON_SCHEMA, SCHEMA))
        prompt = self._model.loaded.tokenizer.encode("Does it work? The answer in JSON:")
        params = SamplingParams(temperature=0, max_tokens=64)
        options = RequestOptions(belonging=OURS)
        with self._model.loaded.engine.submit(prompt, params, options, guidance) as stream:
            text = (await read_whole(stream, self._model.splitter())).content
        fault = await asyncio.to_thread(AnswerValidator(SCHEMA).fault_of, text)
        if fault:
            raise Failed(f"the answer {text!r} does not have its form ({fault})", REPORT_IT)
        return f"{' '.join(text.split())} has its form"

    async def remember(self) -> str:
        """What was read goes out of the cells and comes back; the answer must be the same, with the
        same chances to the last bit."""
        engine = self._model.loaded.engine
        options = RequestOptions(belonging=OURS, is_reproducible=True, num_logprobs=3)
        prompt = random_prompt(self._model.loaded, 2 * GRID_TOKENS + 8)
        first = await self._ask(prompt, 4, options)
        await engine.set_aside()
        second = await self._ask(prompt, 4, options)
        timings = second[-1].timings
        num_back = 0 if timings is None else timings.restored_tokens
        if not num_back:
            raise Failed(
                "nothing came back into the model's memory: none is kept outside of it",
                "allow some RAM for conversations in the settings, under Memory",
            )
        if _chances(first) != _chances(second):
            raise Failed(
                f"{num_back} tokens came back, and the answer to them is another one", REPORT_IT
            )
        return f"{counted(num_back, 'token')} came back from RAM, and the answer is the same"

    async def _ask(
        self, prompt: list[int], num_tokens: int, options: RequestOptions | None = None
    ) -> list[RequestOutput]:
        params = SamplingParams(
            temperature=0, max_tokens=num_tokens, ignore_eos=True, loop_guard=False
        )
        engine = self._model.loaded.engine
        with engine.submit(prompt, params, options or RequestOptions(belonging=OURS)) as stream:
            return [output async for output in stream]


def _chances(outputs: list[RequestOutput]) -> list[object]:
    return [choice for output in outputs for choice in (*output.token_ids, *output.choices)]


def _store_and_read(folder: Path) -> str:
    """Blocks: SQLite waits for the disk."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=folder, prefix="self-test-") as place:
        file = Path(place) / "history.sqlite3"

        async def write() -> str:
            with Database(file) as database:
                conversation = await Conversations(database).create(_WORDS)
                return conversation.conversation_id

        async def read(conversation_id: str) -> str:
            with Database(file) as database:
                return (await Conversations(database).get(conversation_id)).title

        title = asyncio.run(read(asyncio.run(write())))
    if title != _WORDS:
        raise Failed(f"{_WORDS!r} was stored, and {title!r} was read", REPORT_IT)
    return f"a conversation was stored and read again in {time.perf_counter() - began:.2f} s"
