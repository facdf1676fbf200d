"""One engine without a thread, in which an answer can be written again exactly as it was.

Two ways to compute an answer can be compared only over the same answer. Biases at the sampler would
have to differ from place to place, and change what is measured. So the replay stands below it: in
each row of logits that the model computes, the token that came before is raised above all others.
Everything behind (form, sampler, detokenizer) works as ever, on both sides alike, and it costs both
one number that is written in each row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.chat.ledger import TokenLedger
from app.chat.message import Role
from app.chat.template import ChatTemplate
from app.chat.turns import Turn, normalise
from engine.backends.base import Backend, ModelRunner, StepFailure
from engine.batch import Batch, ScheduledRequest
from engine.config import EngineConfig
from engine.engine import Engine, RequestFailure
from engine.errors import EngineError
from engine.guided.answer import Guidance
from engine.metrics import Timings
from engine.request import IN_FRONT, Request, RequestOptions
from engine.sampling.draft_model import DraftModel
from engine.sampling_params import SamplingParams

# Above every logit that a model gives.
RAISED = 1e9
GREEDY = SamplingParams(temperature=0.0, loop_guard=False)
MOST_TOKENS = 1024
"""Of an answer in a form: far more than any has, so that none is closed in a hurry."""
PREPARATION = RequestOptions(is_preparation=True)

Change = Callable[[NDArray[np.float32], Sequence[int]], int | None]
"""Looks at a row and at the answer before it; names the token to be raised, if any."""


@dataclass(frozen=True, slots=True)
class Written:
    """An answer, and what it took once its prompt was read."""

    token_ids: tuple[int, ...]
    processor_s: float
    wall_s: float
    timings: Timings

    @property
    def tokens_per_second(self) -> float:
        return len(self.token_ids) / self.wall_s


class ReplayRunner:
    """Raises in each row the token that `change` names."""

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner
        self.change: Change | None = None

    def execute(self, batch: Batch) -> NDArray[np.float32] | StepFailure:
        logits = self._runner.execute(batch)
        if self.change is None or isinstance(logits, StepFailure):
            return logits
        rows = iter(logits)
        for item in batch.sampled:
            request = item.request
            known = request.token_ids[request.num_prompt_tokens : item.start + item.num_known]
            for number in range(item.num_rows):
                row = next(rows)
                token_id = self.change(row, [*known, *item.draft[:number]])
                if token_id is not None:
                    row[token_id] = RAISED
        return logits

    @property
    def step_cost(self) -> float:
        return self._runner.step_cost

    def abort_step(self) -> None:
        self._runner.abort_step()

    def accept_steps(self) -> None:
        self._runner.accept_steps()


class ReplayBackend:
    """A backend with a replay behind its runner; the backend stays its owner's."""

    def __init__(self, backend: Backend) -> None:
        self.kind = backend.kind
        self.info = backend.info
        self.tokenizer = backend.tokenizer
        self.media = backend.media
        self.kv_memory = backend.kv_memory
        self.max_request_tokens = backend.max_request_tokens
        self.model_runner = ReplayRunner(backend.model_runner)

    def close(self) -> None:
        """Nothing: others may use the same backend."""


class ReplayEngine:
    """Answers one request after the other on the thread that asks.

    Several may share a backend, since each leaves its memory empty: where a context happens to lie
    makes it faster or slower than another by more than what is measured.
    """

    def __init__(
        self, backend: Backend, config: EngineConfig, draft_model: DraftModel | None = None
    ) -> None:
        self._backend = ReplayBackend(backend)
        # What is stored beside the cells would be stored for nothing.
        config = replace(config, kv_ram_bytes=0)
        self._engine = Engine(self._backend, config, draft_model=draft_model)
        self._engine.measure_steps()

    def write(
        self,
        prompt: Sequence[int],
        params: SamplingParams = GREEDY,
        guidance: Guidance | None = None,
        change: Change | None = None,
    ) -> Written:
        """An answer to a prompt that is read before the time begins. Raises EngineError."""
        self._engine.forget_all()
        self._finish(Request(list(prompt), params, PREPARATION))
        self._backend.model_runner.change = change
        try:
            return self._finish(Request(list(prompt), params, IN_FRONT, guidance))
        finally:
            self._backend.model_runner.change = None
            self._engine.forget_all()

    def again(
        self,
        prompt: Sequence[int],
        script: Sequence[int],
        guidance: Guidance | None = None,
    ) -> Written:
        """The same tokens once more. In a form the answer ends by itself."""
        most = MOST_TOKENS if guidance is not None else len(script)
        params = replace(GREEDY, max_tokens=most, ignore_eos=guidance is None)
        return same(script, self.write(prompt, params, guidance, following(script)))

    def step_processor_s(self, num_tokens: int, times: int) -> float:
        """The median of steps of so many tokens, from an empty memory."""
        found = []
        for _ in range(times):
            request = Request([0] * num_tokens, GREEDY, sequence_id=0)
            batch = Batch((ScheduledRequest.of(request, num_tokens),))
            began = process_time()
            computed = self._backend.model_runner.execute(batch)
            found.append(process_time() - began)
            self._backend.kv_memory.free(0)
            if isinstance(computed, StepFailure):
                raise EngineError("The model could not compute a step of this benchmark.")
        return median(found)

    def _finish(self, request: Request) -> Written:
        token_ids: list[int] = []
        began, wall_began = process_time(), perf_counter()
        self._engine.add_request(request)
        while True:
            for output in self._engine.step():
                if isinstance(output, RequestFailure):
                    raise output.error
                token_ids += output.token_ids
                if output.timings is not None:
                    spent = process_time() - began
                    wall = perf_counter() - wall_began
                    return Written(tuple(token_ids), spent, wall, output.timings)


def following(script: Sequence[int]) -> Change:
    """Raises what came before, as far as it goes."""

    def change(row: NDArray[np.float32], known: Sequence[int]) -> int | None:
        return script[len(known)] if len(known) < len(script) else None

    return change


def same(script: Sequence[int], written: Written) -> Written:
    """Raises EngineError where it is not the same answer."""
    if written.token_ids != tuple(script):
        raise EngineError(
            f"An answer of {len(script)} tokens became another one of {len(written.token_ids)} when"
            " it was written again, so the two sides cannot be compared."
        )
    return written


class Prompts:
    """Questions as the model's own chat template puts them."""

    def __init__(self, backend: Any) -> None:
        info = backend.info
        template = ChatTemplate.for_model(
            info.chat_template, backend.tokenizer, info.bos_text, info.eos_text
        )
        self.opened_tag = template.opened_tag
        self._ledger = TokenLedger(backend.tokenizer, template)

    def ask(self, text: str) -> list[int]:
        # A template may show the date; the same one in every run.
        now = datetime(2024, 2, 29, tzinfo=UTC)
        return self._ledger.encode(normalise([Turn(Role.USER, text)]), now)
