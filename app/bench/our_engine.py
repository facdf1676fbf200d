"""Our engine as one side of a benchmark: generations in, what they took out."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import clock_gettime, perf_counter, sleep
from typing import Any, Self, TypeVar

from app.bench.workload import Generation
from app.models.local import find_model
from app.paths import Paths
from app.settings import Settings
from engine.async_engine import AsyncEngine
from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import EngineError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stream:
    """One generation as its reader saw it: seconds since the first was submitted."""

    arrivals: tuple[float, ...]
    decode_rate: float

    @property
    def ended(self) -> float:
        return self.arrivals[-1]


@dataclass(frozen=True, slots=True)
class Taken:
    """Generations that ran together. Rates in tokens a second, all streams added up."""

    streams: tuple[Stream, ...]

    @property
    def decode_rate(self) -> float:
        """After the first token of each stream."""
        return sum(stream.decode_rate for stream in self.streams)

    @property
    def seconds(self) -> float:
        return max(stream.ended for stream in self.streams)

    @property
    def end_to_end_rate(self) -> float:
        """From the submission to the last token, with the prompts read."""
        return sum(len(stream.arrivals) for stream in self.streams) / self.seconds


@dataclass(frozen=True, slots=True)
class StepCost:
    """Milliseconds a step of what is neither llama.cpp's decode nor the sampler."""

    steps: int
    wall_ms: float
    processor_ms: float
    sampler_ms: float


def model_of(name: str) -> Path:
    """A path, a name of `models list`, or nothing: the starter model. Makes no folder."""
    return find_model(Paths.from_environment(), Settings(), name)


class OurEngine:
    """A loaded model that is closed at the end of the `with` block. Used by one thread."""

    def __init__(self, config: EngineConfig) -> None:
        # The library reads its environment when it is loaded, and other benchmarks need none.
        from engine.backends.llama_cpp.backend import LlamaBackend

        self._backend = LlamaBackend(config)
        self._steps = Engine(self._backend, config)
        self._steps.measure_steps()
        self.tokenizer = self._backend.tokenizer
        self.engine = AsyncEngine(self._steps, self._backend.max_request_tokens)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()
        self.engine.close()

    def generate(self, generations: Sequence[Generation]) -> Taken:
        """All of them at once; the event loop stands still before and after."""
        return self.run(self.generate_together(generations))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """In the event loop of this side, which stands still between two calls."""
        return self._runner.run(work)

    async def generate_together(self, generations: Sequence[Generation]) -> Taken:
        began = perf_counter()
        streams = [self.follow(generation, began) for generation in generations]
        return Taken(tuple(await asyncio.gather(*streams)))

    async def follow(self, generation: Generation, began: float) -> Stream:
        arrivals: list[float] = []
        rate = 0.0
        with self.engine.submit(list(generation.prompt), generation.params) as stream:
            async for output in stream:
                arrivals.extend([perf_counter() - began] * len(output.token_ids))
                if output.timings is not None:
                    rate = output.timings.tokens_per_second
        if len(arrivals) != generation.num_tokens:
            raise EngineError(
                f"Only {len(arrivals)} of {generation.num_tokens} tokens came: the context is too"
                " small for this benchmark."
            )
        return Stream(tuple(arrivals), rate)

    def forget(self) -> None:
        """Start from an empty memory: every held cell, used or not, costs each step a little."""
        is_done = Event()
        self.engine.do(lambda engine: engine.forget_all(), lambda error: is_done.set())
        is_done.wait()

    def step_cost(self, generations: Sequence[Generation]) -> StepCost:
        """What Python costs in each step of these generations.

        The processor time is the engine thread's, all of it: also what it takes to look into the
        inbox, to hand out what a step brought, and to get hold of the interpreter again.
        """
        self.forget()
        before = self._moment()
        self.generate(generations)
        after = self._moment()
        steps, cycle, computing, sampler, processor, idle = (
            now - then for now, then in zip(after, before, strict=True)
        )
        scale = 1e3 / steps
        return StepCost(
            int(steps),
            (cycle - computing - sampler) * scale,
            (processor - idle) * scale,
            sampler * scale,
        )

    def _moment(self) -> tuple[float, ...]:
        # The last output is handed out before its step has ended.
        sleep(0.02)
        clock = self._steps.clock
        computing = self._backend.model_runner.computing
        return (
            clock.steps,
            clock.cycle,
            computing.wall,
            clock.sampler.wall,
            self._processor_time(),
            computing.processor + clock.sampler.processor,
        )

    def _processor_time(self) -> float:
        identifier = self.engine.thread_clock
        if identifier is None:
            raise EngineError("This system does not tell the processor time of a thread.")
        return clock_gettime(identifier)
