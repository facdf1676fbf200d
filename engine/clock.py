"""Where the time of the engine thread goes."""

from dataclasses import dataclass, field
from time import perf_counter, thread_time


@dataclass(slots=True)
class Spent:
    """Seconds inside its `with` blocks: on the wall, and of the thread's own processor time.

    Owned by one thread; others may read it. Not to be nested in itself.
    """

    wall: float = 0.0
    processor: float = 0.0
    _wall_began: float = 0.0
    _processor_began: float = 0.0

    def __enter__(self) -> None:
        self._wall_began = perf_counter()
        self._processor_began = thread_time()

    def __exit__(self, *_: object) -> None:
        self.processor += thread_time() - self._processor_began
        self.wall += perf_counter() - self._wall_began


@dataclass(slots=True)
class StepClock:
    """Owned by the engine thread. A cycle is a step and the delivery of what it brought.

    Processor time is taken of the sampler alone: asking for it costs microseconds.
    """

    steps: int = 0
    cycle: float = 0.0
    sampler: Spent = field(default_factory=Spent)
