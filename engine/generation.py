"""What the engine keeps beside a request: its text, its times, and when it must end."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from engine.detokenizer import Detokenizer
from engine.errors import EngineError, GrammarFailed, NoTokenLeft
from engine.guided.answer import GuidedAnswer
from engine.logprobs import TokenChoice, choice_of
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
FORM_NEEDS_BANNED = (
    "The answer is incomplete: its form needs something here that logit_bias or banned_phrases"
    " bans."
)
MORE_TOKENS = "; allow it more tokens."
SHORTENED_NOTICE = (
    "The answer was brought to its end when hardly a token was left for it; allow it more tokens."
)
STOP_NOTICE = "The stop texts were left out, because an answer in a form ends as its form does."


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a generation is over, and what the reader should know about it."""

    reason: FinishReason
    notice: str = ""
    name: str = ""


PREPARED = Ending(FinishReason.STOP, name="prepared")
LOOP = Ending(FinishReason.LENGTH, LOOP_NOTICE, "loop")


def failed_form(error: EngineError) -> Ending:
    """What is written cannot be brought into its form."""
    return Ending(FinishReason.GRAMMAR_INCOMPLETE, str(error), "grammar_failed")


class Generation:
    """Owned by the engine thread: a request from the moment it is taken in."""

    def __init__(
        self, request: Request, tokenizer: Tokenizer, max_tokens: int, *, read_forced: bool = True
    ) -> None:
        """`read_forced`: what a form leaves no choice about is read together."""
        self.request = request
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        guidance = request.guidance
        self._guided = None if guidance is None else GuidedAnswer(guidance, tokenizer)
        stop = request.params.stop
        self._is_text = guidance is None or guidance.is_text
        # A stop text may be part of what a form requires.
        self._detokenizer = Detokenizer(tokenizer, stop if self._is_text else ())
        self._notice = STOP_NOTICE if stop and not self._is_text else ""
        self._guard = LoopGuard() if request.params.loop_guard else None
        self._added = perf_counter()
        self._scheduled: float | None = None
        self._first_token: float | None = None
        self._last_token = self._added
        # Not given to the reader yet.
        self._texts: list[str] = []
        self._token_ids: list[int] = []
        self._choices: list[TokenChoice] = []
        self._choice: TokenChoice | None = None
        self._num_forced = self._num_drafted = self._num_accepted = 0
        self._reads_forced = read_forced and self._may_read_forced()
        self._failure: GrammarFailed | None = None
        self.ending = self._begin()
        """Why it is over before its first token is chosen: its form leaves no choice at all."""

    def _begin(self) -> Ending | None:
        """Take the beginning that was given, and what every answer of this form begins with: that
        is read with the prompt."""
        try:
            if self.request.options.num_candidates:
                # Nobody reads it.
                self.request.token_ids.extend(self.request.beginning)
                if self._guided is not None:
                    self._guided.begin(self.request.beginning)
                return None
            for token_id in self.request.beginning:
                # Whether it could end here does not count: it goes on.
                self._append(token_id)
            return self._take_forced() if self._num_left > 1 else None
        except GrammarFailed as error:
            self._failure = error
            return None

    def _may_read_forced(self) -> bool:
        """Not where each token is looked at: by who asks how likely it was, or by what is banned,
        which may be what the form would force."""
        options, params = self.request.options, self.request.params
        is_looked_at = options.is_reproducible or options.num_logprobs is not None
        return not (is_looked_at or params.logit_bias or params.banned_phrases)

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
        guided, request = self._guided, self.request
        if self._failure is not None:
            raise self._failure
        if guided is None:
            token_id = sampler.sample_row(row, request)
            self._note_choice(row, token_id, sampler)
            return token_id
        allowed: NDArray[np.float32] | None = None

        def sample(row: NDArray[np.float32]) -> int:
            nonlocal allowed
            allowed = row
            return sampler.sample_row(row, request, is_in_form=guided.is_restricted)

        try:
            token_id = guided.pick(row, self._num_left, sample)
        except NoTokenLeft as error:
            raise GrammarFailed(str(error)) from error
        # It may have been put there without being drawn, such as the way to an end.
        if sampler.forbids(token_id, request):
            raise GrammarFailed(FORM_NEEDS_BANNED)
        self._note_choice(row, token_id, sampler, allowed)
        return token_id

    def look_ahead(self, row: NDArray[np.float32], sampler: Sampler) -> RequestOutput:
        """The last output of a request that ends when its prompt is read. Raises EngineError."""
        request, options = self.request, self.request.options
        if options.shows_logits:
            logits = sampler.usable(row, request).copy()
            return replace(self.finish(PREPARED), logits=logits)
        if not options.num_candidates:
            return self.finish(PREPARED)
        if self._failure is not None:
            raise self._failure
        allowed = None if self._guided is None else self._guided.allowed(row, self._num_left)
        best = sampler.likeliest(row, request, options.num_candidates, allowed)
        self._first_token = self._last_token = perf_counter()
        self._choices.append(TokenChoice(best[0], tuple(best)))
        return self.finish(Ending(FinishReason.STOP, name="candidates"))

    def _note_choice(
        self,
        row: NDArray[np.float32],
        token_id: int,
        sampler: Sampler,
        allowed: NDArray[np.float32] | None = None,
    ) -> None:
        num_alternatives = self.request.options.num_logprobs
        if num_alternatives is not None:
            usable = sampler.usable(row, self.request)
            self._choice = choice_of(usable, token_id, num_alternatives, allowed)

    def take(self, token_id: int) -> Ending | None:
        """Go on with a sampled token, and with what must follow it. None: the answer goes on."""
        self._last_token = perf_counter()
        if self._first_token is None:
            self._first_token = self._last_token
        if self._tokenizer.is_end(token_id) and not self.request.params.ignore_eos:
            return Ending(FinishReason.STOP, name="end")
        try:
            ending = self._append(token_id)
            return self._take_forced() if ending is None else ending
        except GrammarFailed as error:
            return failed_form(error)

    def note_draft(self, num_drafted: int, num_accepted: int) -> None:
        self._num_drafted += num_drafted
        self._num_accepted += num_accepted

    def plausible(self, draft: Sequence[int]) -> Sequence[int]:
        """As much of a draft as this answer may still take; it is not empty."""
        draft = draft[: max(0, self._num_left - 1)]
        return draft if self._guided is None else draft[: self._guided.possible(draft)]

    def output(self) -> RequestOutput:
        """What has come since the last output."""
        output = RequestOutput(
            self.request.request_id,
            "".join(self._texts),
            tuple(self._token_ids),
            tuple(self._choices),
            num_prompt_tokens_read=self._num_prompt_tokens_read,
        )
        self._texts.clear()
        self._token_ids.clear()
        self._choices.clear()
        return output

    def finish(self, ending: Ending) -> RequestOutput:
        """The last output, with whatever text was held back."""
        output = self.output()
        return replace(
            output,
            text=output.text + self._detokenizer.finish(),
            finish_reason=ending.reason,
            timings=self._timings(ending),
            notice=_joined(ending.notice, self._notice, self._shortened_notice(ending)),
        )

    def _shortened_notice(self, ending: Ending) -> str:
        """It has its form, and the model would have gone on."""
        is_shortened = self._guided is not None and self._guided.is_shortened
        return SHORTENED_NOTICE if is_shortened and ending.reason is FinishReason.STOP else ""

    def _append(self, token_id: int) -> Ending | None:
        """Raises GrammarFailed, and then the token is no part of the answer."""
        if self._guided is not None:
            self._guided.accept(token_id)
        self.request.token_ids.append(token_id)
        self._token_ids.append(token_id)
        if self._choice is not None:
            self._choices.append(self._choice)
        self._texts.append(self._detokenizer.feed(token_id))
        return self._ending_after(token_id)

    def _take_forced(self) -> Ending | None:
        """Append what the form leaves no choice about, so that it is computed in one step."""
        if self._guided is None or not self._reads_forced:
            return None
        ending = None
        while ending is None and (forced := self._guided.forced(self._num_left)):
            for token_id in forced:
                self._num_forced += 1
                ending = self._append(token_id)
                if ending is not None:
                    break
        return ending

    @property
    def _num_left(self) -> int:
        """How many tokens the answer may still get."""
        request = self.request
        return min(
            request.params.max_tokens - request.num_output_tokens,
            self._max_tokens - request.num_tokens,
        )

    @property
    def _num_prompt_tokens_read(self) -> int:
        """A preemption takes back what was computed, and not that it was read."""
        request = self.request
        if self._first_token is not None:
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
        is_cut = not self._is_text and guided is not None and not guided.is_complete
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
        num_begun = min(len(request.beginning), request.num_output_tokens)
        num_written = request.num_output_tokens - num_begun
        num_held = request.num_cached_tokens + request.num_restored_tokens
        num_prefilled = self._num_prompt_tokens_read - num_held
        return Timings(
            prefilled_tokens=max(0, num_prefilled),
            cached_tokens=request.num_cached_tokens,
            restored_tokens=request.num_restored_tokens,
            restored_from=self._restored_from,
            restore_ms=request.restore_ms,
            is_reproducible=request.options.is_reproducible,
            begun_tokens=num_begun,
            forced_tokens=self._num_forced,
            drafted_tokens=self._num_drafted,
            accepted_tokens=self._num_accepted,
            completion_tokens=num_written,
            ttft_ms=(first - self._added) * 1e3,
            tpot_ms=(self._last_token - first) * 1e3 / (num_written - 1) if num_written > 1 else 0,
            queue_ms=(scheduled - self._added) * 1e3,
            finish=ending.name or ending.reason.value,
        )


def _joined(*notices: str) -> str:
    return " ".join(filter(None, notices))
