"""Beam search on the running engine: each step of each beam is a request of its own.

Beams share all that they have in common: the KV tree finds it for each, and what is new is one
token a beam, computed together. So beams are nothing that the scheduler must know about, and run
beside everybody else.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from engine.async_engine import AsyncEngine
from engine.detokenizer import Detokenizer
from engine.errors import UsageError
from engine.guided.answer import Guidance
from engine.kv.segment import NOBODY
from engine.logprobs import TokenLogprob
from engine.loop_guard import is_loop
from engine.metrics import Timings
from engine.request import FinishReason, RequestOptions
from engine.sampling.beam import Beam, BeamParams, BeamSearch, EndedBeam
from engine.sampling_params import SamplingParams
from engine.tokenizer import Tokenizer

MOST_TOKENS = 2048
"""Of an answer: each step looks at all of a beam, so twice as many take four times as long."""
# Control tokens are spelled as nothing.
LEEWAY = 8


@dataclass(frozen=True, slots=True)
class BeamAnswer:
    """One of the best answers: its text up to an end token or a stop text."""

    text: str
    token_ids: tuple[int, ...]
    logprob: float
    """The sum over its tokens, with the end token if there is one."""
    score: float
    """By which the answers are ordered, the highest first."""
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class BeamResult:
    answers: tuple[BeamAnswer, ...]
    timings: Timings


async def search(
    engine: AsyncEngine,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    beams: BeamParams,
    params: SamplingParams,
    options: RequestOptions,
    guidance: Guidance | None = None,
) -> BeamResult:
    """The best answers to a prompt. Raises what `submit` raises.

    Of `params` the bans, the penalties, `stop` and the limits count; there is nothing to draw, so
    temperature, filters and seed do not. Of an answer in a form every beam is in that form.
    """
    return await _Search(engine, tokenizer, prompt, beams, params, options, guidance).run()


class _Search:
    """Owned by the task that waits for it."""

    def __init__(
        self,
        engine: AsyncEngine,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        beams: BeamParams,
        params: SamplingParams,
        options: RequestOptions,
        guidance: Guidance | None,
    ) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._prompt = list(prompt)
        self._params = params
        self._guidance = guidance
        # A stop text may be part of what a form requires.
        self._stop = params.stop if guidance is None else ()
        if params.max_tokens > MOST_TOKENS:
            raise UsageError(
                f"A beam search may have {MOST_TOKENS:,} tokens at most, got"
                f" {params.max_tokens:,}: lower max_tokens."
            )
        # What a form demands may go round in circles.
        self._guards = params.loop_guard and guidance is None
        self._max_tokens = min(params.max_tokens, engine.max_request_tokens - len(prompt))
        self._beams = BeamSearch(
            beams,
            self._max_tokens,
            tokenizer.num_end_tokens,
            self._is_ended,
            keeps_cut=guidance is None,
        )
        # Beams are computed together.
        self._options = replace(
            options, is_reproducible=False, num_candidates=self._beams.num_candidates
        )
        self._first: Timings | None = None
        # Why nothing could follow a beam, or empty.
        self._reason = ""

    async def run(self) -> BeamResult:
        began = perf_counter()
        goes_on = True
        while goes_on:
            found = await asyncio.gather(*map(self._candidates, self._beams.running))
            goes_on = self._beams.advance(found)
        seconds = perf_counter() - began
        answers = tuple(map(self._answer, self._beams.answers))
        if not answers:
            raise UsageError(
                self._reason
                or f"No answer was found in this form within {self._max_tokens:,} tokens: raise"
                " max_tokens or n_beams, or try a simpler form."
            )
        assert self._first is not None
        num_written = sum(len(answer.token_ids) for answer in answers)
        timings = replace(
            self._first,
            completion_tokens=num_written,
            tpot_ms=(seconds * 1e3 - self._first.ttft_ms) / max(1, num_written),
            finish="beams",
        )
        return BeamResult(answers, timings)

    async def _candidates(self, beam: Beam) -> Sequence[TokenLogprob]:
        """What may come next; nothing when its form cannot be kept to any more."""
        options = self._options
        if beam.token_ids:
            # Nobody comes back for a beam, so it is not kept as part of anybody's conversation.
            options = replace(options, belonging=NOBODY)
        with self._engine.submit(
            self._prompt, self._params, options, self._guidance, beam.token_ids
        ) as stream:
            *_, last = [output async for output in stream]
        assert last.timings is not None
        if self._first is None:
            self._first = last.timings
        if last.choices:
            return last.choices[0].alternatives
        self._reason = last.notice
        return ()

    def _is_ended(self, token_ids: tuple[int, ...]) -> bool:
        if self._tokenizer.is_end(token_ids[-1]) and not self._params.ignore_eos:
            return True
        return self._is_stopped(token_ids) or (self._guards and is_loop(token_ids))

    def _answer(self, ended: EndedBeam) -> BeamAnswer:
        token_ids = ended.token_ids
        has_end = self._tokenizer.is_end(token_ids[-1]) and not self._params.ignore_eos
        if has_end:
            token_ids = token_ids[:-1]
        detokenizer = Detokenizer(self._tokenizer, self._stop)
        text = "".join(map(detokenizer.feed, token_ids)) + detokenizer.finish()
        is_whole = has_end or detokenizer.stopped
        reason = FinishReason.STOP if is_whole else FinishReason.LENGTH
        return BeamAnswer(text, token_ids, ended.logprob, ended.score, reason)

    def _is_stopped(self, token_ids: tuple[int, ...]) -> bool:
        """Whether a stop text ends with the last of these tokens."""
        longest = max((len(stop.encode()) for stop in self._stop), default=0)
        last = token_ids[-longest - LEEWAY :] if longest else ()
        spelled = b"".join(map(self._tokenizer.token_bytes, last)).decode("utf-8", "replace")
        return any(stop in spelled for stop in self._stop)
