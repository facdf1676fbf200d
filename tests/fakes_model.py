"""A chat model without a model: a test writes the answers, token by token, when it likes."""

import asyncio
from typing import Any, Self, cast

from app.chat.chat_model import ChatModel
from app.chat.ledger import TokenLedger
from app.paths import Paths
from app.services import Services
from engine.async_engine import AsyncEngine
from engine.backends.base import ModelInfo
from engine.errors import EngineDead, InglenookError, PromptTooLong
from engine.loading import LoadedModel
from engine.metrics import Timings
from engine.request import FinishReason, RequestOutput
from engine.sampling_params import SamplingParams
from tests.fakes_text import FAMILIES, Family


class FakeStream:
    """One answer. The test feeds it; the reader iterates it as it would the engine's."""

    def __init__(self, prompt: list[int], params: SamplingParams) -> None:
        self.prompt = prompt
        self.params = params
        self.is_over = False
        self.is_aborted = False
        self._num_written = 0
        self._outputs: asyncio.Queue[RequestOutput | InglenookError] = asyncio.Queue()

    # For the test

    def read(self, num_tokens: int) -> None:
        """So much of the prompt is read."""
        self._outputs.put_nowait(RequestOutput(0, num_prompt_tokens_read=num_tokens))

    def write(self, text: str) -> None:
        """One output, with a token for each byte."""
        self._outputs.put_nowait(
            RequestOutput(0, text, tuple(text.encode()), num_prompt_tokens_read=len(self.prompt))
        )
        self._num_written += len(text.encode())

    def end(
        self, text: str = "", reason: FinishReason = FinishReason.STOP, notice: str = ""
    ) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._num_written += len(text.encode())
        timings = Timings(
            prefilled_tokens=len(self.prompt),
            completion_tokens=self._num_written,
            finish=reason.value,
        )
        self._outputs.put_nowait(
            RequestOutput(
                0,
                text,
                tuple(text.encode()),
                num_prompt_tokens_read=len(self.prompt),
                finish_reason=reason,
                timings=timings,
                notice=notice,
            )
        )

    def fail(self, error: InglenookError) -> None:
        self.is_over = True
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
    """Keeps every stream it gave; `script` lets it answer by itself."""

    def __init__(self, max_request_tokens: int = 4096, script: str | None = None) -> None:
        self.max_request_tokens = max_request_tokens
        self.streams: list[FakeStream] = []
        self.script = script
        self.is_dead = False
        self.is_closed = False

    def submit(self, prompt: list[int], params: SamplingParams) -> FakeStream:
        if len(prompt) >= self.max_request_tokens:
            raise PromptTooLong(len(prompt), self.max_request_tokens)
        if self.is_dead:
            raise EngineDead("The engine has stopped: restart the app.")
        stream = FakeStream(prompt, params)
        self.streams.append(stream)
        if self.script is not None:
            for letter in self.script:
                stream.write(letter)
            stream.end()
        return stream

    @property
    def num_running(self) -> int:
        return sum(not stream.is_over for stream in self.streams)

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
        trained_context=engine.max_request_tokens,
        num_bytes=1,
        kv_bytes_per_token=1,
        chat_template=chosen.source,
        bos_text=chosen.bos,
        eos_text=chosen.eos,
    )
    loaded = LoadedModel(cast(AsyncEngine, engine), tokenizer, info, "fake")
    made = chosen.template(tokenizer)
    return ChatModel(loaded, made, TokenLedger(tokenizer, made))


class FakeModelServices(Services):
    """A real home whose model is `engine`."""

    def __init__(self, paths: Paths, engine: FakeEngine, template: str = "chatml") -> None:
        super().__init__(paths)
        self.engine = engine
        self._template = template

    async def _load(self) -> ChatModel:
        return fake_chat_model(self.engine, self._template)
