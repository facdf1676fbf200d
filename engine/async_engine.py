"""The engine on a thread of its own.

    event loop                         engine thread
    generate() -- Submit / Abort -->   inbox, taken in between two steps
    stream queue <-- outputs ----      every step, without ever waiting for a reader

Two rules keep every reader from hanging. Submit first and look second whether the engine died:
what was put in before its death is answered by `_die`, what came after is seen by the caller.
And an abort is put in before the running step is told to return, while the thread takes that
signal back before it looks into the inbox: whichever comes first, none is lost.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread

from engine.engine import Engine, RequestFailure
from engine.errors import EngineDead, InglenookError, PromptTooLong, UsageError
from engine.request import Request, RequestOutput
from engine.sampling_params import SamplingParams

logger = logging.getLogger(__name__)

STOPPED = "The engine has stopped: restart the app; your conversations are kept."
CLOSED = "The engine was closed."


@dataclass(frozen=True, slots=True)
class Stream:
    """Where one reader waits."""

    loop: asyncio.AbstractEventLoop
    outputs: "asyncio.Queue[RequestOutput | InglenookError]"

    def send(self, item: RequestOutput | InglenookError) -> None:
        # A loop that was closed has no reader left to tell.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self.outputs.put_nowait, item)


@dataclass(frozen=True, slots=True)
class Submit:
    request: Request
    stream: Stream


@dataclass(frozen=True, slots=True)
class Abort:
    request_id: int


@dataclass(frozen=True, slots=True)
class Shutdown:
    pass


class AsyncEngine:
    """The only way into the engine from elsewhere. Its methods belong to the callers' threads."""

    def __init__(self, engine: Engine, max_request_tokens: int) -> None:
        self._engine = engine
        self.max_request_tokens = max_request_tokens
        self._inbox: SimpleQueue[Submit | Abort | Shutdown] = SimpleQueue()
        self._streams: dict[int, Stream] = {}
        self._death: BaseException | None = None
        self._thread = Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._death is None

    @property
    def num_running(self) -> int:
        return self._engine.num_running

    @property
    def num_waiting(self) -> int:
        return self._engine.num_waiting

    @property
    def overhead_ms(self) -> float:
        """Milliseconds a step outside the model and the sampler, so far."""
        return self._engine.clock.overhead_ms

    async def generate(
        self, prompt: list[int], params: SamplingParams
    ) -> AsyncGenerator[RequestOutput, None]:
        """Yield outputs until the request finishes; closing the iterator aborts it.

        Raises PromptTooLong before anything is submitted, EngineError when this request failed,
        EngineDead when the engine did.
        """
        if not prompt:
            raise UsageError("There is nothing to answer: the prompt is empty.")
        if len(prompt) >= self.max_request_tokens:
            raise PromptTooLong(len(prompt), self.max_request_tokens)
        request = Request(list(prompt), params)
        stream = Stream(asyncio.get_running_loop(), asyncio.Queue())
        self._inbox.put(Submit(request, stream))
        if self._death is not None:
            raise EngineDead(STOPPED) from self._death
        finished = False
        try:
            while not finished:
                item = await stream.outputs.get()
                if isinstance(item, InglenookError):
                    finished = True
                    raise item
                finished = item.finish_reason is not None
                yield item
        finally:
            if not finished:
                self._inbox.put(Abort(request.request_id))
                self._engine.abort_step()

    def close(self) -> None:
        """End the thread and free the model; open streams are told. Harmless twice."""
        self._inbox.put(Shutdown())
        self._engine.abort_step()
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._receive():
                for output in self._engine.step():
                    self._deliver(output)
        except Exception as death:
            logger.exception("the engine thread stopped")
            self._die(death)
        else:
            self._die(EngineDead(CLOSED))
        finally:
            self._engine.close()

    def _receive(self) -> bool:
        """Take every waiting command; block only when there is nothing to compute."""
        self._engine.accept_steps()
        while True:
            try:
                command = self._inbox.get(block=not self._engine.has_work)
            except Empty:
                return True
            match command:
                case Submit(request, stream):
                    self._streams[request.request_id] = stream
                    self._engine.add_request(request)
                case Abort(request_id):
                    self._streams.pop(request_id, None)
                    self._engine.abort_request(request_id)
                case Shutdown():
                    return False

    def _deliver(self, output: RequestOutput | RequestFailure) -> None:
        if isinstance(output, RequestFailure):
            self._streams.pop(output.request_id).send(output.error)
            return
        if output.finish_reason is None:
            self._streams[output.request_id].send(output)
        else:
            self._streams.pop(output.request_id).send(output)

    def _die(self, death: BaseException) -> None:
        """Fail every open stream, and whatever is still in the inbox."""
        self._death = death
        while True:
            try:
                command = self._inbox.get_nowait()
            except Empty:
                break
            if isinstance(command, Submit):
                self._streams[command.request.request_id] = command.stream
        for stream in self._streams.values():
            stream.send(EngineDead(STOPPED))
        self._streams.clear()
