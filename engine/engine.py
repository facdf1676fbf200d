"""The step: schedule, compute, sample, deliver. Everything else hangs on these four words."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import psutil
from numpy.typing import NDArray

from engine.backends.base import Backend, StepFailure
from engine.batch import Batch, ScheduledRequest
from engine.clock import StepClock
from engine.config import EngineConfig
from engine.errors import EngineError, GrammarFailed, NoTokenLeft, UsageError
from engine.generation import Ending, Generation, failed_form
from engine.kv.disk import Disk, StoredSegment
from engine.kv.pressure import MemoryPressure
from engine.kv.seats import Seats, common_prefix
from engine.kv.store import KVUsage
from engine.media import MediaSpan
from engine.request import FinishReason, Request, RequestOutput
from engine.sampling.draft_gate import StepCosts
from engine.sampling.draft_model import DraftModel
from engine.sampling.sampler import Sampler
from engine.sampling.speculate import Speculator
from engine.sampling_params import SamplingParams
from engine.scheduler import Scheduler

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0
# How soon to look what the disk has done, while it is writing.
WRITER_LOOK_SECONDS = 0.05
MEASURED_SIZES = 1, 12, 4, 2, 1
MEASURING_SECONDS = 0.3
MAX_RAM_BUDGET = 4_000_000_000
NO_MEDIA = (
    "The loaded model reads neither pictures nor sounds: choose a model that does, with its mmproj"
    " file beside it."
)


@dataclass(frozen=True, slots=True)
class RequestFailure:
    """One request that cannot go on, with the sentence for its reader."""

    request_id: int
    error: EngineError


class Engine:
    """All running generations of one backend. Owned by the engine thread."""

    def __init__(
        self,
        backend: Backend,
        config: EngineConfig,
        costs: StepCosts | None = None,
        draft_model: DraftModel | None = None,
    ) -> None:
        """`costs` of its steps, where they are known; see `measure_steps`. `draft_model`: it
        guesses what comes next, and is closed with the engine."""
        self._backend = backend
        self._tokenizer = backend.tokenizer
        self._runner = backend.model_runner
        self._pressure = MemoryPressure(ram_budget(config.kv_ram_bytes))
        self._seats = Seats(
            backend.kv_memory,
            ram_budget=ram_budget(config.kv_ram_bytes),
            disk_budget=config.kv_disk_bytes,
        )
        self._has_states = not backend.kv_memory.can_cut
        self._media = backend.media
        self._scheduler = Scheduler(
            self._seats,
            max_running=config.max_running,
            max_batch_tokens=config.max_batch_tokens,
            media=self._media,
        )
        self._sampler = Sampler(backend.tokenizer)
        # A recurrent state cannot be put back to before a guess that was wrong.
        can_guess = config.speculate and backend.kv_memory.can_cut
        self._speculator = Speculator(costs or StepCosts(), draft_model) if can_guess else None
        self._draft_model = draft_model
        self._read_forced = config.read_forced
        self._generations: dict[int, Generation] = {}
        self.clock = StepClock()

    @property
    def has_work(self) -> bool:
        return self._scheduler.has_work

    @property
    def is_waiting_for_media(self) -> bool:
        """What runs can only go on when a picture has been looked at."""
        return self._media is not None and self._scheduler.is_waiting_for_media

    @property
    def num_running(self) -> int:
        return self._scheduler.num_running

    @property
    def num_waiting(self) -> int:
        return self._scheduler.num_waiting

    @property
    def num_vocabulary(self) -> int:
        return self._tokenizer.num_tokens

    def add_request(self, request: Request) -> None:
        """Queue a request whose prompt fits; the caller has checked that."""
        self._generations[request.request_id] = Generation(
            request,
            self._tokenizer,
            self._backend.max_request_tokens,
            read_forced=self._read_forced,
        )
        self._scheduler.add(request)

    def abort_request(self, request_id: int) -> RequestOutput | None:
        """End a request now. None when it has ended already."""
        generation = self._generations.get(request_id)
        if generation is None:
            return None
        output = generation.finish(Ending(FinishReason.ABORT))
        self._leave(generation.request)
        return output

    def abort_step(self) -> None:
        """Let the running step, or else the next one, return early. Any thread may call it."""
        self._runner.abort_step()

    def accept_steps(self) -> None:
        self._runner.accept_steps()

    def spans_in(self, prompt: Sequence[int]) -> tuple[MediaSpan, ...]:
        """The pictures and sounds of a prompt. Any thread may call it. Raises UsageError."""
        if min(prompt, default=0) >= 0:
            return ()
        if self._media is None:
            raise UsageError(NO_MEDIA)
        spans = self._media.spans_in(prompt)
        if spans and spans[-1].end == len(prompt):
            raise UsageError("A prompt must end with text: say something about the picture.")
        return spans

    def step(self) -> list[RequestOutput | RequestFailure]:
        failures = self._fail_unreadable()
        if failures:
            return failures
        self._guess()
        batch = self._scheduler.schedule()
        if not batch.scheduled:
            return []
        for item in batch.scheduled:
            self._generations[item.request.request_id].note_scheduled()
        before = perf_counter()
        logits = self._runner.execute(batch)
        seconds = perf_counter() - before
        if isinstance(logits, StepFailure):
            return self._recover(batch, logits)
        self._commit(batch, seconds)
        self.clock.steps += 1
        outputs: list[RequestOutput | RequestFailure] = []
        first = 0
        for item in batch.sampled:
            outputs.append(self._advance(item, logits[first : first + item.num_rows]))
            first += item.num_rows
        outputs.extend(self._reading_progress(batch))
        if any(_is_damage(output) for output in outputs):
            # What made a row unusable may lie in the cells, where others would come to share it.
            self._overwrite_memory()
        return outputs

    def measure_steps(self) -> None:
        """Find out what steps of a few tokens cost, before the first request: for 0.3 s, or with a
        large model for about as long as 20 tokens take to be read."""
        if self._speculator is None:
            return
        if self._draft_model is not None:
            self._draft_model.measure()
        until = perf_counter() + MEASURING_SECONDS
        while perf_counter() < until or not self._speculator.costs.is_known:
            for num_tokens in MEASURED_SIZES:
                request = Request([0], SamplingParams(), sequence_id=0)
                # As in a step with guesses, each token has a row of logits.
                guessed = (0,) * (num_tokens - 1)
                batch = Batch((ScheduledRequest.of(request, 1, guessed),))
                computed = self._runner.execute(batch)
                self._backend.kv_memory.free(0)
                if isinstance(computed, StepFailure):
                    return
                self._speculator.costs.measured(num_tokens, self._runner.step_cost)

    def maintain(self) -> float | None:
        """A little of the work that no request waits for. Gives the seconds until more of it is
        due: 0 at once, None when nothing is."""
        budget = self._pressure.budget()
        if budget is not None:
            logger.info("memory for KV outside the cells: %d bytes", budget)
            self._seats.store.limit_ram(budget)
        if self._seats.maintain(self._scheduler.num_foreground > 0):
            return 0.0
        return WRITER_LOOK_SECONDS if self._seats.store.is_writing else None

    def attach_disk(self, disk: Disk, stored: Sequence[StoredSegment]) -> None:
        """From now on KV may outlive the process, and what did so can come back."""
        self._seats.store.attach(disk, stored)

    def note_disk(self, notice: str) -> None:
        """Why KV cannot be kept on the disk, for the user."""
        self._seats.store.note(notice)

    def set_aside(self) -> None:
        """Let the conversations that are not being answered leave the cells for the store."""
        self._seats.evict_idle()

    def kv_usage(self) -> KVUsage:
        return self._seats.store.usage()

    def limit_kv(self, ram_bytes: int | None, disk_bytes: int) -> None:
        self._seats.store.limit_ram(self._pressure.choose(ram_budget(ram_bytes)))
        self._seats.store.limit_disk(disk_bytes)

    def forget(self, owner: str, paths: Sequence[Sequence[int]] = ()) -> None:
        """Remove the words of an owner or a source from every tier, except those of these token
        paths and what others go through, too. What is being computed for it leaves nothing."""
        for generation in self._generations.values():
            request = generation.request
            is_kept = any(_goes_along(request.token_ids, path) for path in paths)
            if request.options.belonging.names(owner) and not is_kept:
                request.is_forgotten = True
        self._seats.forget(owner, paths)

    def retain(self, owners: Iterable[str]) -> None:
        """Remove from every tier what belongs to somebody else."""
        self._seats.retain(owners)

    def close(self) -> None:
        """Store what may outlive the process, for some seconds at most, and free the model."""
        try:
            self._seats.flush()
            self._seats.store.close(CLOSE_SECONDS)
        finally:
            if self._draft_model is not None:
                self._draft_model.close()
            self._backend.close()

    def forget_all(self) -> None:
        """Give up all KV, in every tier. What runs is read again."""
        self._overwrite_memory()
        self._seats.store.forget_all()

    def check(self) -> None:
        """The books of the KV memory agree; for tests, as it reads all of them."""
        self._seats.check()

    def _fail_unreadable(self) -> list[RequestOutput | RequestFailure]:
        """End the requests whose next picture cannot be looked at."""
        if self._media is None:
            return []
        failures: list[RequestOutput | RequestFailure] = []
        for request in self._scheduler.running:
            span = request.next_span
            error = None if span is None else self._media.error_of(span)
            if error is not None:
                failures.append(self._fail(request, error))
        return failures

    def _guess(self) -> None:
        if self._speculator is not None:
            running = self._scheduler.running
            self._speculator.guess([self._generations[each.request_id] for each in running])

    def _commit(self, batch: Batch, seconds: float) -> None:
        for item in batch.scheduled:
            request = item.request
            request.num_computed_tokens += item.num_known
            if self._has_states:
                self._seats.checkpoint(request)
        if batch.is_reading:
            self._scheduler.learn_speed(batch.num_tokens, seconds)
        elif self._speculator is not None and not batch.is_reproducible:
            self._speculator.learn(batch, self._runner.step_cost)

    def _advance(
        self, item: ScheduledRequest, rows: NDArray[np.float32]
    ) -> RequestOutput | RequestFailure:
        """Go on with what was computed: one token, and one more for each that was guessed right.

        A guess changes no draw: each token is sampled as if nothing had been guessed, and the rows
        after it count as long as the guess agrees. So the distribution is exactly the model's
        (Leviathan et al., arXiv 2211.17192, with a draft that is certain of itself).
        """
        request = item.request
        generation = self._generations[request.request_id]
        if request.options.ends_when_read:
            return self._end_of_reading(generation, rows[0])
        computed, num_right = item.token_ids, item.num_known
        ending = generation.ending
        while ending is None and request.num_tokens - item.start == num_right:
            try:
                with self.clock.sampler:
                    token_id = generation.pick(rows[num_right - item.num_known], self._sampler)
                ending = generation.take(token_id)
            except GrammarFailed as error:
                ending = failed_form(error)
            except NoTokenLeft as error:
                return self._fail(request, error)
            except EngineError as error:
                self._distrust(request)
                return self._fail(request, error)
            if item.draft:
                known = request.token_ids[item.start : item.start + len(computed)]
                num_right = common_prefix(computed, known, len(known))
        if item.draft:
            generation.note_draft(len(item.draft), num_right - item.num_known)
            self._seats.resync(request, item.start + num_right)
        if ending is None:
            return generation.output()
        output = generation.finish(ending)
        self._leave(request)
        return output

    def _end_of_reading(
        self, generation: Generation, row: NDArray[np.float32]
    ) -> RequestOutput | RequestFailure:
        """The prompt is read, and nothing is written after it."""
        request = generation.request
        try:
            output = generation.look_ahead(row, self._sampler)
        except (GrammarFailed, NoTokenLeft) as error:
            output = generation.finish(failed_form(error))
        except EngineError as error:
            self._distrust(request)
            return self._fail(request, error)
        self._leave(request)
        return output

    def _reading_progress(self, batch: Batch) -> Iterable[RequestOutput]:
        for item in batch.scheduled:
            if not item.is_sampled:
                yield self._generations[item.request.request_id].progress()

    def _recover(self, batch: Batch, failure: StepFailure) -> list[RequestOutput | RequestFailure]:
        """Bring both books together again after a step without logits."""
        requests = [item.request for item in batch.scheduled]
        if failure is StepFailure.BROKEN:
            return self._read_again_or_fail(requests)
        memory = self._backend.kv_memory
        for request in requests:
            # The last token is computed again: its logits are gone with the step.
            held = min(memory.length(request.seat_id), request.num_tokens - 1)
            had_computed = request.num_computed_tokens > 0
            self._seats.resync(request, held)
            if had_computed and request.num_computed_tokens == 0:
                # A state that was half computed is gone whole; an earlier one may be stored.
                self._scheduler.requeue(request)
        if failure is StepFailure.NO_ROOM:
            logger.warning("the KV cells ran out before our books said so")
            if not self._seats.evict_idle():
                if self._scheduler.num_running <= 1:
                    return self._read_again_or_fail(requests)
                self._scheduler.preempt(self._scheduler.running[-1])
                self._seats.evict_idle()
        return []

    def _read_again_or_fail(self, requests: list[Request]) -> list[RequestOutput | RequestFailure]:
        """A computation failed. Once may be chance: everything is read again. Twice is not: these
        requests end."""
        logger.error("the model could not compute a step")
        error = EngineError(
            "The model could not compute this answer: send the message again, or restart the app"
            " if it happens twice."
        )
        failed = [request for request in requests if request.has_failed]
        for request in requests:
            self._distrust(request)
            request.has_failed = True
        failures: list[RequestOutput | RequestFailure] = [
            self._fail(request, error) for request in failed
        ]
        self._overwrite_memory()
        return failures

    def _distrust(self, request: Request) -> None:
        """What it came from may be what was wrong."""
        self._seats.store.distrust(request.token_ids, request.belonging)

    def _overwrite_memory(self) -> None:
        logger.warning("the KV memory is overwritten; running requests are read again")
        for request in reversed(self._scheduler.running):
            # Not for want of room, which is there afterwards: nobody need wait for it.
            self._scheduler.requeue(request)
        self._seats.forget_everything()

    def _fail(self, request: Request, error: EngineError) -> RequestFailure:
        self._leave(request)
        return RequestFailure(request.request_id, error)

    def _leave(self, request: Request) -> None:
        self._scheduler.finish(request)
        self._sampler.forget(request.request_id)
        if self._speculator is not None:
            self._speculator.forget(request)
        if self._media is not None and request.spans:
            others = [each for each in self._scheduler.running if each is not request]
            self._media.let_go(request.spans, [span for each in others for span in each.spans])
        del self._generations[request.request_id]


def _is_damage(output: RequestOutput | RequestFailure) -> bool:
    """The logits themselves were of no use."""
    return isinstance(output, RequestFailure) and not isinstance(output.error, NoTokenLeft)


def _goes_along(token_ids: Sequence[int], path: Sequence[int]) -> bool:
    """One of the two is the beginning of the other."""
    num_common = min(len(token_ids), len(path))
    return list(token_ids[:num_common]) == list(path[:num_common])


def ram_budget(chosen: int | None) -> int:
    """Bytes for KV outside the cells: a quarter of the free memory unless somebody chose."""
    if chosen is not None:
        return chosen
    return min(int(psutil.virtual_memory().available // 4), MAX_RAM_BUDGET)
