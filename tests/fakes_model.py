"""A chat model without a model: a test writes the answers, token by token, when it likes."""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, cast

from app.chat.chat_model import ChatModel
from app.chat.ledger import TokenLedger
from app.paths import Paths
from app.services import Services
from engine.async_engine import AsyncEngine
from engine.backends.base import ModelInfo
from engine.config import EngineConfig
from engine.errors import EngineDead, InglenookError, PromptTooLong
from engine.guided.answer import Guidance
from engine.guided.compiler import GrammarCompiler
from engine.kv.store import KVUsage
from engine.loading import LoadedModel
from engine.logprobs import TokenChoice, TokenLogprob
from engine.metrics import Timings
from engine.request import FinishReason, RequestOptions, RequestOutput
from engine.sampling_params import SamplingParams
from tests.fakes_text import FAMILIES, Family


class FakeStream:
    """One answer. The test feeds it; the reader iterates it as it would the engine's."""

    def __init__(
        self,
        prompt: list[int],
        params: SamplingParams,
        options: RequestOptions,
        num_cached: int,
        leave: Callable[["FakeStream"], None],
    ) -> None:
        self.prompt = prompt
        self.params = params
        self.options = options
        self.num_cached = num_cached
        self.token_ids: list[int] = []
        self._leave = leave
        self.is_over = False
        self.is_aborted = False
        self.guidance: Guidance | None = None
        self.beginning: tuple[int, ...] = ()
        self._outputs: asyncio.Queue[RequestOutput | InglenookError] = asyncio.Queue()

    # For the test

    def read(self, num_tokens: int) -> None:
        """So much of the prompt is read."""
        self._outputs.put_nowait(RequestOutput(0, num_prompt_tokens_read=num_tokens))

    def write(self, text: str, choices: tuple[TokenChoice, ...] = ()) -> None:
        """One output, with a token for each byte."""
        token_ids = tuple(text.encode())
        self._outputs.put_nowait(
            RequestOutput(0, text, token_ids, choices, num_prompt_tokens_read=len(self.prompt))
        )
        self.token_ids += token_ids

    def look_ahead(self, *logprobs: tuple[str, float]) -> None:
        """The end of a request that wants candidates: single letters, and their logprobs."""
        told = tuple(TokenLogprob(ord(letter), logprob) for letter, logprob in logprobs)
        self.end(choices=(TokenChoice(told[0], told),))

    def end(
        self,
        text: str = "",
        reason: FinishReason = FinishReason.STOP,
        notice: str = "",
        choices: tuple[TokenChoice, ...] = (),
        finish: str = "",
    ) -> None:
        """`finish` is the engine's own word for the end, where it says more than `reason`."""
        if self.is_over:
            return
        self.is_over = True
        self.token_ids += text.encode()
        self._leave(self)
        timings = Timings(
            prefilled_tokens=len(self.prompt) - self.num_cached,
            cached_tokens=self.num_cached,
            completion_tokens=len(self.token_ids),
            finish=finish or reason.value,
            is_reproducible=self.options.is_reproducible,
        )
        self._outputs.put_nowait(
            RequestOutput(
                0,
                text,
                tuple(text.encode()),
                choices,
                num_prompt_tokens_read=len(self.prompt),
                finish_reason=reason,
                timings=timings,
                notice=notice,
            )
        )

    def fail(self, error: InglenookError) -> None:
        self.is_over = True
        self._leave(self)
        self._outputs.put_nowait(error)

    # For the reader

    def abort(self) -> None:
        if not self.is_over:
            self.is_aborted = True
            self.end(reason=FinishReason.ABORT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    async def __aiter__(self) -> Any:
        while True:
            item = await self._outputs.get()
            if isinstance(item, InglenookError):
                raise item
            yield item
            if item.finish_reason is not None:
                return


class FakeEngine:
    """Keeps every stream it gave; `script` lets it answer by itself.

    As the engine does, it holds what was computed, finds for a new prompt the longest beginning of
    it, and forgets by owner. Requests in the background are kept apart: a preparation ends at
    once unless `is_busy`, and what else is asked is answered by `background_script`.
    """

    def __init__(
        self,
        max_request_tokens: int = 4096,
        script: str | None = None,
        trained_context: int | None = None,
    ) -> None:
        self.max_request_tokens = max_request_tokens
        self.trained_context = trained_context or max_request_tokens
        self.streams: list[FakeStream] = []
        self.background: list[FakeStream] = []
        self.script = script
        self.background_script: str | None = ""
        self.is_busy = False
        self.is_dead = False
        self.is_closed = False
        self.ram_budget = 10**9
        self.held: list[tuple[str, list[int]]] = []
        """By owner, what is in the cells."""
        self.forgotten: list[str] = []
        self.retained: frozenset[str] | None = None

    def submit(
        self,
        prompt: list[int],
        params: SamplingParams,
        options: RequestOptions = RequestOptions(),  # noqa: B008 - a frozen value
        guidance: Guidance | None = None,
        beginning: Sequence[int] = (),
    ) -> FakeStream:
        if len(prompt) >= self.max_request_tokens:
            raise PromptTooLong(len(prompt), self.max_request_tokens)
        if self.is_dead:
            raise EngineDead("The engine has stopped: restart the app.")
        stream = FakeStream(prompt, params, options, self.num_cached(prompt), self._leave)
        stream.guidance = guidance
        stream.beginning = tuple(beginning)
        if beginning:
            stream.write(bytes(beginning).decode())
        if options.is_in_background:
            self.background.append(stream)
            script = "" if options.is_preparation else self.background_script
            if self.is_busy:
                script = None
        else:
            self.streams.append(stream)
            script = self.script
        if script is not None:
            for letter in script:
                stream.write(letter)
            stream.end()
        return stream

    def num_cached(self, prompt: list[int]) -> int:
        """How much of a prompt is held; its last token is always computed."""
        shared = (len(os.path.commonprefix([held, prompt])) for _, held in self.held)
        return min(max(shared, default=0), len(prompt) - 1)

    def _leave(self, stream: FakeStream) -> None:
        if not stream.options.is_background:
            written = [] if stream.options.is_preparation else stream.token_ids
            owner = stream.options.belonging.owner
            self.held.append((owner, [*stream.prompt, *written]))

    @property
    def kv_usage(self) -> KVUsage:
        num_bytes = sum(len(token_ids) for _, token_ids in self.held)
        return KVUsage(ram_bytes=num_bytes, ram_budget=self.ram_budget, disk_budget=10**10)

    async def limit_kv(self, ram_bytes: int | None, disk_bytes: int) -> None:
        self.ram_budget = 10**9 if ram_bytes is None else ram_bytes

    async def set_aside(self) -> None:
        pass

    async def forget_all(self) -> None:
        self.held.clear()

    async def forget(self, owner: str, paths: Sequence[Sequence[int]] = ()) -> None:
        assert not any(each.options.belonging.owner == owner for each in self._running)
        self.forgotten.append(owner)
        self.held = [each for each in self.held if each[0] != owner]

    async def retain(self, owners: Iterable[str]) -> None:
        self.retained = frozenset(owners)

    @property
    def _running(self) -> list[FakeStream]:
        return [each for each in (*self.streams, *self.background) if not each.is_over]

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return 0

    def close(self) -> None:
        self.is_closed = True


def family(name: str) -> Family:
    return next(each for each in FAMILIES if each.name == name)


def fake_chat_model(engine: FakeEngine, template: str = "chatml") -> ChatModel:
    chosen = family(template)
    tokenizer = chosen.tokenizer()
    info = ModelInfo(
        name="fake-model",
        architecture="fake",
        num_parameters=1,
        quantization="none",
        trained_context=engine.trained_context,
        num_bytes=1,
        kv_bytes_per_token=1,
        chat_template=chosen.source,
        bos_text=chosen.bos,
        eos_text=chosen.eos,
    )
    grammars = GrammarCompiler(tokenizer)
    loaded = LoadedModel(cast(AsyncEngine, engine), tokenizer, info, "fake", grammars)
    made = chosen.template(tokenizer)
    return ChatModel(loaded, made, TokenLedger(tokenizer, made))


class FakeModelServices(Services):
    """A real home whose model is `engine`."""

    def __init__(
        self, paths: Paths, engine: FakeEngine, template: str = "chatml", **named: Any
    ) -> None:
        super().__init__(paths, **named)
        self.engine = engine
        self.max_request_tokens = engine.max_request_tokens
        self._template = template

    async def _open_model(self, config: EngineConfig) -> ChatModel:
        self.engine.max_request_tokens = config.context_tokens or self.max_request_tokens
        return fake_chat_model(self.engine, self._template)
