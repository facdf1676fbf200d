"""The engine on a thread of its own.

    event loop                        engine thread
    submit() -- Submit / Abort -->    inbox, taken in between two steps
    OutputStream <-- outputs ----     every step, without ever waiting for a reader

Two rules keep every reader from hanging. Submit first and look second whether the engine died:
what was put in before its death is answered by `_die`, what came after is seen by the caller.
And an abort is put in before the running step is told to return, while the thread takes that
signal back before it looks into the inbox: whichever comes first, none is lost.

What nobody waits for, such as storing KV, is done a little at a time between steps and while there
is nothing to compute.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Self

from engine.engine import Engine, RequestFailure
from engine.errors import EngineDead, InglenookError, PromptTooLong, UsageError
from engine.guided.answer import Guidance
from engine.kv.store import KVUsage
from engine.request import IN_FRONT, Request, RequestOptions, RequestOutput
from engine.sampling.checks import check_vocabulary
from engine.sampling_params import SamplingParams

logger = logging.getLogger(__name__)

# Steps from one look at what is due to the next; a look costs about as much as a step's sampling.
STEPS_BETWEEN_LOOKS = 16
# How soon to look whether a picture has been looked at, when there is nothing else to do.
MEDIA_LOOK_SECONDS = 0.01

STOPPED = "The engine has stopped: restart the app; your conversations are kept."
CLOSED = "The engine was closed."


class OutputStream:
    """What one reader gets of one request: iterate it in the event loop that submitted.

    Leaving the `with` block before the last output aborts the request. Raises EngineError when
    this request failed, EngineDead when the engine did.
    """

    def __init__(self, engine: "AsyncEngine", request_id: int) -> None:
        self._engine = engine
        self._request_id = request_id
        self._loop = asyncio.get_running_loop()
        self._outputs: asyncio.Queue[RequestOutput | InglenookError] = asyncio.Queue()
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RequestOutput:
        if self._is_over:
            raise StopAsyncIteration
        item = await self._outputs.get()
        if isinstance(item, InglenookError):
            self._is_over = True
            raise item
        self._is_over = item.finish_reason is not None
        return item

    def abort(self) -> None:
        """Ask the engine to end the request; its last output says so. Harmless when it is over."""
        if not self._is_over:
            self._engine.abort(self._request_id)

    @property
    def request_id(self) -> int:
        return self._request_id

    @staticmethod
    def send(items: "Sequence[Delivery]") -> "list[OutputStream]":
        """For the engine thread: to each stream its item, without ever waiting.

        An event loop is woken once for all of them, because a wake-up is dearer than the rest.
        Returns the streams whose loop was closed.
        """
        of_loops: dict[asyncio.AbstractEventLoop, list[Delivery]] = {}
        for delivery in items:
            of_loops.setdefault(delivery[0]._loop, []).append(delivery)
        unreachable: list[OutputStream] = []
        for loop, deliveries in of_loops.items():
            try:
                loop.call_soon_threadsafe(_put_all, deliveries)
            except RuntimeError:
                unreachable += [stream for stream, _ in deliveries]
        return unreachable


Delivery = tuple[OutputStream, RequestOutput | InglenookError]


def _put_all(deliveries: Sequence[Delivery]) -> None:
    for stream, item in deliveries:
        stream._outputs.put_nowait(item)


def _call_soon(
    loop: asyncio.AbstractEventLoop,
    settle: Callable[[BaseException | None], None],
    error: BaseException | None,
) -> None:
    try:
        loop.call_soon_threadsafe(settle, error)
    except RuntimeError:
        logger.debug("whoever asked has gone")


@dataclass(frozen=True, slots=True)
class Submit:
    request: Request
    stream: OutputStream


@dataclass(frozen=True, slots=True)
class Abort:
    request_id: int


@dataclass(frozen=True, slots=True)
class Do:
    """Something for the engine between two steps; `done` gets what it raised, or None."""

    action: Callable[[Engine], None]
    done: Callable[[BaseException | None], None]


@dataclass(frozen=True, slots=True)
class Shutdown:
    pass


class AsyncEngine:
    """The only way into the engine from elsewhere. Its methods belong to the callers' threads."""

    def __init__(self, engine: Engine, max_request_tokens: int) -> None:
        self._engine = engine
        self.max_request_tokens = max_request_tokens
        self._inbox: SimpleQueue[Submit | Abort | Do | Shutdown] = SimpleQueue()
        self._streams: dict[int, OutputStream] = {}
        self._death: BaseException | None = None
        self._steps_to_look = STEPS_BETWEEN_LOOKS
        self._thread = Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._death is None

    @property
    def death(self) -> BaseException | None:
        """What ended the engine; None while it lives."""
        return self._death

    @property
    def num_running(self) -> int:
        return self._engine.num_running

    @property
    def num_waiting(self) -> int:
        return self._engine.num_waiting

    @property
    def thread_clock(self) -> int | None:
        """The clock of the thread's processor time, for `time.clock_gettime`; None: no such."""
        if not hasattr(time, "pthread_getcpuclockid") or self._thread.ident is None:
            return None
        return time.pthread_getcpuclockid(self._thread.ident)

    @property
    def kv_usage(self) -> KVUsage:
        """What KV outside the cells takes now."""
        return self._engine.kv_usage()

    def submit(
        self,
        prompt: list[int],
        params: SamplingParams,
        options: RequestOptions = IN_FRONT,
        guidance: Guidance | None = None,
        beginning: Sequence[int] = (),
    ) -> OutputStream:
        """Queue a request, whose answer has these tokens as its `beginning`; its outputs have
        them, too. Raises PromptTooLong or UsageError before anything is queued."""
        if not prompt:
            raise UsageError("There is nothing to answer: the prompt is empty.")
        known = [*prompt, *beginning]
        if len(known) >= self.max_request_tokens:
            raise PromptTooLong(len(known), self.max_request_tokens)
        spans = self._engine.spans_in(prompt)
        # Ids below 0 are allowed where they stand for a picture.
        is_known = max(known) < self._engine.num_vocabulary and min(beginning, default=0) >= 0
        if not is_known:
            raise UsageError("The prompt has tokens of another model: send the message again.")
        check_vocabulary(params.logit_bias, self._engine.num_vocabulary)
        if guidance is not None and params.ignore_eos:
            raise UsageError("An answer in a given form ends with it: leave ignore_eos out.")
        if beginning and len(beginning) >= params.max_tokens:
            raise UsageError(
                f"This answer begins with {len(beginning):,} tokens, and it may have"
                f" {params.max_tokens:,}: allow it more."
            )
        request = Request(list(prompt), params, options, guidance, tuple(beginning), spans)
        stream = OutputStream(self, request.request_id)
        self._inbox.put(Submit(request, stream))
        if self._death is not None:
            raise EngineDead(STOPPED) from self._death
        return stream

    def abort(self, request_id: int) -> None:
        """End a request, also in the middle of reading its prompt. Harmless when it is over."""
        self._inbox.put(Abort(request_id))
        self._engine.abort_step()

    async def forget(self, owner: str, paths: Sequence[Sequence[int]] = ()) -> None:
        """Remove the KV of an owner's words everywhere, but for these token paths and for what
        other owners go through. What is being computed for it leaves nothing behind."""
        await self._ask(lambda engine: engine.forget(owner, paths))

    async def retain(self, owners: Iterable[str]) -> None:
        """Remove the KV of everybody else's words: those were deleted while the app was away."""
        known = frozenset(owners)
        await self._ask(lambda engine: engine.retain(known))

    async def forget_all(self) -> None:
        """Give up all KV, in memory and on the disk, also other models'. What runs is read
        again."""
        await self._ask(lambda engine: engine.forget_all())

    async def set_aside(self) -> None:
        """Let the conversations that are not being answered leave the cells for the store."""
        await self._ask(lambda engine: engine.set_aside())

    async def limit_kv(self, ram_bytes: int | None, disk_bytes: int) -> None:
        """Change the budgets of KV outside the cells, in bytes; they hold from now on."""
        await self._ask(lambda engine: engine.limit_kv(ram_bytes, disk_bytes))

    def do(
        self,
        action: Callable[[Engine], None],
        done: Callable[[BaseException | None], None] = lambda error: None,
    ) -> None:
        """Let the engine's thread do something between two steps. An error is given to `done`,
        which is called in that thread. Raises EngineDead when there is no engine any more."""
        self._inbox.put(Do(action, done))
        if self._death is not None:
            raise EngineDead(STOPPED) from self._death

    async def _ask(self, action: Callable[[Engine], None]) -> None:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()

        def settle(error: BaseException | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(None)
            else:
                answer.set_exception(error)

        self.do(action, lambda error: _call_soon(loop, settle, error))
        await answer

    def close(self) -> None:
        """End the thread and free the model; open streams are told. Harmless twice."""
        self._inbox.put(Shutdown())
        self._engine.abort_step()
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._receive():
                began = perf_counter()
                self._deliver(self._engine.step())
                self._engine.clock.cycle += perf_counter() - began
                self._look_after_step()
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
                command = self._next_command()
            except Empty:
                return True
            match command:
                case Submit(request, stream):
                    self._streams[request.request_id] = stream
                    self._engine.add_request(request)
                    # Whoever is idle may have to make way for it.
                    self._steps_to_look = 1
                case Abort(request_id):
                    output = self._engine.abort_request(request_id)
                    if output is not None:
                        self._deliver([output])
                case Do(action, done):
                    self._carry_out(action, done)
                case Shutdown():
                    return False

    def _next_command(self) -> Submit | Abort | Do | Shutdown:
        """Raises Empty as soon as there is something to compute and nothing was asked."""
        while not self._engine.has_work:
            due = self._engine.maintain()
            try:
                if due == 0.0:
                    return self._inbox.get_nowait()
                return self._inbox.get(timeout=due)
            except Empty:
                continue
        if self._engine.is_waiting_for_media:
            return self._inbox.get(timeout=MEDIA_LOOK_SECONDS)
        return self._inbox.get_nowait()

    def _look_after_step(self) -> None:
        self._steps_to_look -= 1
        if self._steps_to_look <= 0 and self._engine.has_work:
            due = self._engine.maintain()
            self._steps_to_look = 1 if due == 0.0 else STEPS_BETWEEN_LOOKS

    def _carry_out(
        self, action: Callable[[Engine], None], done: Callable[[BaseException | None], None]
    ) -> None:
        error: InglenookError | None = EngineDead(STOPPED)
        try:
            action(self._engine)
            error = None
        except InglenookError as refusal:
            error = refusal
        finally:
            # Also when it was something else, which ends the engine.
            done(error)

    def _deliver(self, outputs: Sequence[RequestOutput | RequestFailure]) -> None:
        items: list[Delivery] = []
        for output in outputs:
            stream = self._streams[output.request_id]
            if isinstance(output, RequestFailure):
                items.append((stream, output.error))
                del self._streams[output.request_id]
            else:
                items.append((stream, output))
                if output.finish_reason is not None:
                    del self._streams[output.request_id]
        for stream in OutputStream.send(items):
            # Nobody can read the rest, nor abort it.
            if self._streams.pop(stream.request_id, None) is not None:
                self._engine.abort_request(stream.request_id)

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
            elif isinstance(command, Do):
                command.done(EngineDead(STOPPED))
        OutputStream.send([(stream, EngineDead(STOPPED)) for stream in self._streams.values()])
        self._streams.clear()
