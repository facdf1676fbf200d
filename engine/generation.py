"""What the engine keeps beside a request: its text, its times, and when it must end."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from engine.detokenizer import Detokenizer
from engine.errors import GrammarFailed
from engine.guided.answer import GuidedAnswer
from engine.loop_guard import LOOP_NOTICE, LoopGuard
from engine.metrics import Timings
from engine.request import FinishReason, Request, RequestOutput
from engine.sampling.sampler import Sampler
from engine.tokenizer import Tokenizer

CONTEXT_FULL_NOTICE = (
    "The context of {max_tokens:,} tokens is full, so the answer ends here: start a new"
    " conversation or choose a larger context in the settings."
)
INCOMPLETE_NOTICE = "The answer is incomplete: it ended before it had the form that was asked for"
MORE_TOKENS = "; allow it more tokens."
STOP_NOTICE = "The stop texts were left out, because an answer in a form ends as its form does."


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a generation is over, and what the reader should know about it."""

    reason: FinishReason
    notice: str = ""
    name: str = ""


LOOP = Ending(FinishReason.LENGTH, LOOP_NOTICE, "loop")


class Generation:
    """Owned by the engine thread: a request from the moment it is taken in."""

    def __init__(self, request: Request, tokenizer: Tokenizer, max_tokens: int) -> None:
        self.request = request
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        guidance = request.guidance
        self._guided = None if guidance is None else GuidedAnswer(guidance, tokenizer)
        stop = request.params.stop
        # A stop text may be part of what a form requires.
        self._detokenizer = Detokenizer(tokenizer, stop if guidance is None else ())
        self._notice = STOP_NOTICE if stop and guidance is not None else ""
        self._guard = LoopGuard() if request.params.loop_guard else None
        self._added = perf_counter()
        self._scheduled: float | None = None
        self._first_token: float | None = None
        self._last_token = self._added

    def note_scheduled(self) -> None:
        if self._scheduled is None:
            self._scheduled = perf_counter()

    def progress(self) -> RequestOutput:
        """How much of the prompt is read."""
        return RequestOutput(
            self.request.request_id, num_prompt_tokens_read=self._num_prompt_tokens_read
        )

    def pick(self, row: NDArray[np.float32], sampler: Sampler) -> int:
        """The next token from a row of logits. Raises EngineError."""
        if self._guided is None:
            return sampler.sample_row(row, self.request)
        return self._guided.pick(
            row, self._num_left, lambda row: sampler.sample_row(row, self.request)
        )

    def accept(self, token_id: int) -> RequestOutput:
        """Take a sampled token; the output has a finish reason when it was the last."""
        now = perf_counter()
        if self._first_token is None:
            self._first_token = now
        self._last_token = now
        request, params = self.request, self.request.params
        if self._tokenizer.is_end(token_id) and not params.ignore_eos:
            return self.finish(Ending(FinishReason.STOP, name="end"))
        if self._guided is not None:
            try:
                self._guided.accept(token_id)
            except GrammarFailed as error:
                return self.fail_form(error)
        request.token_ids.append(token_id)
        text = self._detokenizer.feed(token_id)
        ending = self._ending_after(token_id)
        if ending is not None:
            return self.finish(ending, text, (token_id,))
        return RequestOutput(
            request.request_id,
            text,
            (token_id,),
            num_prompt_tokens_read=self._num_prompt_tokens_read,
        )

    def fail_form(self, error: GrammarFailed) -> RequestOutput:
        """The last output, when what is written cannot be brought into its form."""
        return self.finish(Ending(FinishReason.GRAMMAR_INCOMPLETE, str(error), "grammar_failed"))

    def finish(
        self, ending: Ending, text: str = "", token_ids: tuple[int, ...] = ()
    ) -> RequestOutput:
        """The last output, with whatever text was held back."""
        return RequestOutput(
            self.request.request_id,
            text + self._detokenizer.finish(),
            token_ids,
            num_prompt_tokens_read=self._num_prompt_tokens_read,
            finish_reason=ending.reason,
            timings=self._timings(ending),
            notice=_joined(ending.notice, self._notice),
        )

    @property
    def _num_left(self) -> int:
        """Tokens that may still be written."""
        request = self.request
        return min(
            request.params.max_tokens - request.num_output_tokens,
            self._max_tokens - request.num_tokens,
        )

    @property
    def _num_prompt_tokens_read(self) -> int:
        """A preemption takes back what was computed, and not that it was read."""
        request = self.request
        if request.num_output_tokens:
            return request.num_prompt_tokens
        return min(request.num_computed_tokens, request.num_prompt_tokens)

    @property
    def _restored_from(self) -> str:
        if not self.request.num_restored_tokens:
            return ""
        return "disk" if self.request.is_from_disk else "ram"

    def _ending_after(self, token_id: int) -> Ending | None:
        guided = self._guided
        if guided is not None and guided.is_closing and guided.is_complete:
            return LOOP
        if guided is not None and guided.is_terminated:
            return Ending(FinishReason.STOP, name="form")
        ending = self._ending_for_length(token_id)
        is_cut = guided is not None and not guided.is_complete
        if ending is not None and ending.reason is FinishReason.LENGTH and is_cut:
            remedy = MORE_TOKENS if ending.name == "max_tokens" else "."
            notice = _joined(ending.notice, INCOMPLETE_NOTICE + remedy)
            return Ending(FinishReason.GRAMMAR_INCOMPLETE, notice, ending.name)
        return ending

    def _ending_for_length(self, token_id: int) -> Ending | None:
        request, params = self.request, self.request.params
        if self._detokenizer.stopped:
            return Ending(FinishReason.STOP, name="stop_text")
        if request.num_output_tokens >= params.max_tokens:
            return Ending(FinishReason.LENGTH, name="max_tokens")
        if request.num_tokens >= self._max_tokens:
            notice = CONTEXT_FULL_NOTICE.format(max_tokens=self._max_tokens)
            return Ending(FinishReason.LENGTH, notice, "context_full")
        if self._guard is not None and self._guard.feed(token_id) and not self._leaves_loop():
            return LOOP
        return None

    def _leaves_loop(self) -> bool:
        """An answer in a form that goes round in circles goes on when its form demands that, and
        when it can be brought to its end."""
        guided = self._guided
        if guided is None or guided.is_complete:
            return False
        if guided.is_closing or guided.is_forced:
            return True
        if not guided.close(self._num_left):
            return False
        # What comes now is no part of it.
        self._guard = LoopGuard()
        return True

    def _timings(self, ending: Ending) -> Timings:
        request = self.request
        scheduled = self._scheduled or perf_counter()
        first = self._first_token or self._last_token
        num_written = request.num_output_tokens
        num_held = request.num_cached_tokens + request.num_restored_tokens
        num_prefilled = self._num_prompt_tokens_read - num_held
        return Timings(
            prefilled_tokens=max(0, num_prefilled),
            cached_tokens=request.num_cached_tokens,
            restored_tokens=request.num_restored_tokens,
            restored_from=self._restored_from,
            restore_ms=request.restore_ms,
            is_reproducible=request.options.is_reproducible,
            completion_tokens=num_written,
            ttft_ms=(first - self._added) * 1e3,
            tpot_ms=(self._last_token - first) * 1e3 / (num_written - 1) if num_written > 1 else 0,
            queue_ms=(scheduled - self._added) * 1e3,
            finish=ending.name or ending.reason.value,
        )


def _joined(*notices: str) -> str:
    return " ".join(filter(None, notices))
