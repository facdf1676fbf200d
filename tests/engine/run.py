"""Drives an engine step by step over the fake backend and compares every answer with its oracle."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.config import EngineConfig
from engine.engine import Engine, RequestFailure
from engine.errors import EngineError
from engine.guided.answer import Guidance
from engine.logprobs import TokenChoice
from engine.metrics import Timings
from engine.request import IN_FRONT, FinishReason, Request, RequestOptions, RequestOutput
from engine.sampling.draft_gate import StepCosts
from engine.sampling_params import SamplingParams
from tests.fakes import FakeBackend, answer_alone, fake_config

GREEDY = SamplingParams(temperature=0.0, max_tokens=8, ignore_eos=True, loop_guard=False)


class EngineRun:
    """One engine with all that it ever gave. Steps are bounded: nothing may go on for ever."""

    def __init__(
        self,
        config: EngineConfig | None = None,
        *,
        can_cut: bool = True,
        max_request_tokens: int | None = None,
        looks_back: int | None = None,
        costs: StepCosts | None = None,
    ) -> None:
        config = config or fake_config()
        self.backend = FakeBackend(config, can_cut=can_cut, max_request_tokens=max_request_tokens)
        self.memory = self.backend.kv_memory
        self.runner = self.backend.model_runner
        self.runner.looks_back = looks_back
        self.engine = Engine(self.backend, config, costs)
        self.requests: dict[int, Request] = {}
        self.prompts: dict[int, list[int]] = {}
        self.tokens: dict[int, list[int]] = {}
        self.texts: dict[int, str] = {}
        self.choices: dict[int, list[TokenChoice]] = {}
        self.last: dict[int, RequestOutput] = {}
        self.errors: dict[int, EngineError] = {}
        self.ended: list[int] = []
        self.open: list[int] = []
        self.num_steps = 0

    def submit(
        self,
        prompt: Sequence[int],
        params: SamplingParams = GREEDY,
        options: RequestOptions = IN_FRONT,
        guidance: Guidance | None = None,
        beginning: Sequence[int] = (),
        **changes: object,
    ) -> int:
        request = Request(
            list(prompt), replace(params, **changes), options, guidance, tuple(beginning)
        )
        number = request.request_id
        self.requests[number] = request
        self.prompts[number] = list(prompt)
        self.tokens[number] = []
        self.texts[number] = ""
        self.choices[number] = []
        self.open.append(number)
        self.engine.add_request(request)
        return number

    def abort(self, number: int) -> None:
        output = self.engine.abort_request(number)
        if output is not None:
            self._take(output)
        self.engine.check()

    def step(self) -> None:
        self.num_steps += 1
        self.engine.accept_steps()
        self.take(self.engine.step())

    def take(self, outputs: Iterable[RequestOutput | RequestFailure]) -> None:
        """What a step gave."""
        for output in outputs:
            self._take(output)
        self.engine.check()

    def finish(self, limit: int = 2000) -> None:
        for _ in range(limit):
            if not self.engine.has_work:
                return
            self.step()
        raise AssertionError(f"still at work after {limit} steps: {self.open}")

    def expected(self, number: int) -> list[int]:
        params = self.requests[number].params
        return answer_alone(
            self.prompts[number], params, self.backend.max_request_tokens, self.runner.looks_back
        )

    def check_answer(self, number: int) -> None:
        """All of the answer, or the beginning of it when it was aborted or failed."""
        expected = self.expected(number)
        given = self.tokens[number]
        if self.requests[number].options.is_preparation:
            assert not given
        elif number in self.errors or self.last[number].finish_reason is FinishReason.ABORT:
            assert given == expected[: len(given)]
        else:
            assert given == expected

    def timings(self, number: int) -> Timings:
        timings = self.last[number].timings
        assert timings is not None
        return timings

    def cached_tokens(self, number: int) -> int:
        return self.timings(number).cached_tokens

    def rest(self, limit: int = 2000) -> None:
        """Until nothing is left to do that nobody waits for."""
        for _ in range(limit):
            if self.engine.maintain() != 0.0:
                return
            self.engine.check()
        raise AssertionError("never at rest")

    def _take(self, output: RequestOutput | RequestFailure) -> None:
        number = output.request_id
        assert number in self.open, "an output after the last one"
        if isinstance(output, RequestFailure):
            self.errors[number] = output.error
            self._end(number)
            return
        self.tokens[number].extend(output.token_ids)
        self.texts[number] += output.text
        self.choices[number].extend(output.choices)
        self.last[number] = output
        if output.finish_reason is not None:
            assert output.timings is not None
            timings = output.timings
            assert timings.begun_tokens + timings.completion_tokens == len(self.tokens[number])
            self._end(number)

    def _end(self, number: int) -> None:
        self.open.remove(number)
        self.ended.append(number)
