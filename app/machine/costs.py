"""What reading and writing cost on this machine: in time, in processor time, and in energy.

Measured with the loaded model and a text that nobody has read before. Processor time counts every
thread of this process, also while one waits for another: that is what the machine is kept busy.
"""

import time
from dataclasses import dataclass

from app.machine.energy import JOULES_PER_WATT_HOUR, EnergyMeter
from app.machine.kv_costs import OURS, random_prompt
from app.machine.rates import Rates
from engine.loading import LoadedModel
from engine.request import RequestOptions
from engine.sampling_params import SamplingParams

WRITTEN_TOKENS = 32
READ_SECONDS = 3.0
"""How long reading should take at most, as far as the rates can tell."""
LEAST_READ, MOST_READ = 32, 512
# What a model reads is seldom faster than this part of the bare products.
EXPECTED_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """`num_tokens` that were read or written. `joules` None: this machine does not tell."""

    num_tokens: int
    seconds: float
    processor_seconds: float
    joules: float | None = None

    @property
    def tokens_per_second(self) -> float:
        return self.num_tokens / self.seconds if self.seconds > 0 else 0.0

    @property
    def processor_seconds_per_1000(self) -> float:
        return 1000 * self.processor_seconds / max(1, self.num_tokens)

    @property
    def watt_hours_per_1000(self) -> float | None:
        """Of the whole processor, whatever else ran on it."""
        if self.joules is None:
            return None
        return 1000 * self.joules / JOULES_PER_WATT_HOUR / max(1, self.num_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    reading: Work
    writing: Work


async def measure_costs(loaded: LoadedModel, rates: Rates) -> Costs:
    """Some seconds of work. Raises the EngineError of a model that cannot answer."""
    # The first step after a pause is slower than those that follow.
    await _read(loaded, 8)
    reading = await _read(loaded, num_to_read(loaded.info.num_parameters, rates))
    writing = await _write(loaded, WRITTEN_TOKENS)
    await loaded.engine.forget(OURS.owner)
    return Costs(reading=reading, writing=writing)


def num_to_read(num_parameters: int, rates: Rates) -> int:
    """As many tokens as say something and do not take long."""
    speed = EXPECTED_SHARE * rates.multiply_adds_per_s / max(1, num_parameters)
    return max(LEAST_READ, min(MOST_READ, round(speed * READ_SECONDS)))


async def _read(loaded: LoadedModel, num_tokens: int) -> Work:
    prompt = random_prompt(loaded, num_tokens)
    clock = _Clock()
    options = RequestOptions(belonging=OURS, num_candidates=1)
    with loaded.engine.submit(prompt, SamplingParams(temperature=0), options) as stream:
        async for _ in stream:
            pass
    return clock.work(len(prompt))


async def _write(loaded: LoadedModel, num_tokens: int) -> Work:
    """After the first token, whose time is that of the prompt."""
    params = SamplingParams(temperature=0, max_tokens=num_tokens, ignore_eos=True, loop_guard=False)
    clock, num_before, num_written = _Clock(), 0, 0
    options = RequestOptions(belonging=OURS)
    with loaded.engine.submit(random_prompt(loaded, 8), params, options) as stream:
        async for output in stream:
            is_first = num_written == 0
            num_written += len(output.token_ids)
            if is_first:
                clock, num_before = _Clock(), num_written
    return clock.work(num_written - num_before)


class _Clock:
    """Everything that is counted, from when it was made."""

    def __init__(self) -> None:
        self._meter = EnergyMeter()
        self._began, self._processor = time.perf_counter(), time.process_time()

    def work(self, num_tokens: int) -> Work:
        return Work(
            num_tokens=num_tokens,
            seconds=time.perf_counter() - self._began,
            processor_seconds=time.process_time() - self._processor,
            joules=self._meter.joules(),
        )
