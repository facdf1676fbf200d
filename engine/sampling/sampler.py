"""The sampler: a row of logits in, one token id out."""

import logging

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineError
from engine.logprobs import TokenLogprob, likeliest, log_total
from engine.request import Request
from engine.sampling.chain import BEFORE_CHOICE, Place, Stage, stages
from engine.sampling.samplers import draw
from engine.sampling.state import SamplerState
from engine.sampling.vocabulary import SamplingVocabulary
from engine.tokenizer import Tokenizer

logger = logging.getLogger(__name__)


class Sampler:
    """Picks the next token of each request. Owned by the engine thread.

    It never writes into the logits. Each request has a state of its own, with its own generator,
    so what it draws does not depend on the requests beside it.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocabulary = SamplingVocabulary(tokenizer)
        self._states: dict[int, SamplerState] = {}
        self._warned: set[int] = set()

    def sample_row(
        self, row: NDArray[np.float32], request: Request, *, is_in_form: bool = False
    ) -> int:
        """The next token of one request; EngineError when `row` predicts nothing, NoTokenLeft
        when what the request bans leaves nothing. `is_in_form`: what a form forbids is -inf."""
        row = self.usable(row, request)
        state = self.state_of(request)
        way = stages(row, state, _place_of(request, is_in_form))
        stage = before = next(way)
        for following in way:
            before, stage = stage, following
        return _pick(stage, before, state)

    def likeliest(
        self,
        row: NDArray[np.float32],
        request: Request,
        num: int,
        in_form: NDArray[np.float32] | None = None,
    ) -> list[TokenLogprob]:
        """At most `num` tokens that may come next, the best first: after bans, form and penalties,
        before temperature and filters. `in_form`: the row with what a form allows.

        The probabilities are those of the whole row: what was taken from others is not shared out
        again. Raises as `sample_row` does.
        """
        row = self.usable(row, request)
        considered = row if in_form is None else self.usable(in_form, request)
        place = _place_of(request, in_form is not None)
        way = stages(considered, self.state_of(request), place)
        kept = next(way)
        for stage in way:
            if stage.name not in BEFORE_CHOICE:
                break
            kept = stage
        left = np.full(len(row), -np.inf, np.float32)
        left[kept.candidates.token_ids] = kept.candidates.logits
        total = log_total(row)
        best = likeliest(left, num)
        return [TokenLogprob(int(each), float(left[each]) - total) for each in best]

    def forbids(self, token_id: int, request: Request) -> bool:
        """Whether the request bans a token that was not drawn at this place."""
        return self.state_of(request).forbids(token_id, request.token_ids)

    def state_of(self, request: Request) -> SamplerState:
        """What is remembered of a request; begun when there is nothing."""
        state = self._states.get(request.request_id)
        if state is None:
            state = SamplerState(
                request.params, self._vocabulary, request.num_prompt_tokens, request.num_tokens
            )
            self._states[request.request_id] = state
        return state

    def forget(self, request_id: int) -> None:
        """Drop what is kept for a request; nothing happens when nothing is kept."""
        self._states.pop(request_id, None)
        self._warned.discard(request_id)

    def usable(self, row: NDArray[np.float32], request: Request) -> NDArray[np.float32]:
        """The columns that are tokens, the largest of them finite, and none that is no number."""
        row = row[: self._vocabulary.num_tokens]
        # NaN wins an argmax, so the largest value alone tells whether the row needs a closer look.
        if np.isfinite(row[row.argmax()]):
            return row
        certain = np.isposinf(row)
        if certain.any():
            return np.where(certain, np.float32(0), np.float32(-np.inf))
        broken = np.isnan(row)
        if broken.any() and request.request_id not in self._warned:
            self._warned.add(request.request_id)
            logger.warning(
                "Request %d: %d of %d logits are not numbers; they are left out.",
                request.request_id,
                np.count_nonzero(broken),
                len(row),
            )
        row = np.where(broken, np.float32(-np.inf), row)
        if np.isneginf(row).all():
            raise EngineError(
                f"The model computed no usable number for any of its {len(row):,} tokens, so this"
                " answer ends here: try again, and if it happens again the model file is damaged"
                " or does not suit this machine."
            )
        return row


def _place_of(request: Request, is_in_form: bool) -> Place:
    return Place(request.token_ids, request.num_output_tokens, is_in_form)


def _pick(stage: Stage, before: Stage, state: SamplerState) -> int:
    """Draw from the last stage, and let the state know what it must remember."""
    candidates = stage.candidates
    if stage.is_settled:
        return candidates.token(0)
    index = draw(candidates, state.generator)
    if stage.name == "mirostat" and state.mirostat is not None:
        state.mirostat.observe(float(candidates.probabilities()[index]))
    elif stage.name == "adaptive_p" and state.adaptive is not None:
        # The same tokens, with the probabilities that they really had.
        state.adaptive.observe(float(before.candidates.probabilities()[index]))
    return candidates.token(index)
