"""Beam search: the best answers by the probability of all of their tokens together.

The rules are those of transformers 5 (`GenerationMixin._beam_search`), so that the same model gives
the same answers with the same scores there and here:

    candidates    of all running beams together, max(2, 1 + ends) x beams of the likeliest
    going on      the best of those that have not ended
    ended         those among the best `num_beams` candidates that have; scored by
                  sum of log p / length ^ length_penalty, the end token counted in both

It ends when no running beam can become better than the worst of the ended ones, as far as
`early_stopping` says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from engine.errors import InvalidParams
from engine.logprobs import TokenLogprob

MOST_BEAMS = 16
LENGTH_PENALTIES = -10.0, 10.0


class EarlyStopping(Enum):
    """When it is over, once as many answers have ended as there are beams."""

    YES = "true"
    """At once."""
    NO = "false"
    """When the best running beam, as long as it is now, would not become one of them."""
    NEVER = "never"
    """When it would not either at its full length, where `length_penalty` favours long ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamParams:
    """`length_penalty` above 0 favours long answers, below 0 short ones; `num_answers` of the
    ended ones are given, at most as many as there are beams."""

    num_beams: int
    length_penalty: float = 1.0
    early_stopping: EarlyStopping = EarlyStopping.NO
    num_answers: int = 1

    def __post_init__(self) -> None:
        if type(self.num_beams) is not int or not 1 <= self.num_beams <= MOST_BEAMS:
            raise InvalidParams(f"n_beams must be a whole number between 1 and {MOST_BEAMS}.")
        low, high = LENGTH_PENALTIES
        if type(self.length_penalty) not in (int, float) or not low <= self.length_penalty <= high:
            raise InvalidParams(f"length_penalty must be between {low:g} and {high:g}.")
        if type(self.num_answers) is not int or not 1 <= self.num_answers <= self.num_beams:
            raise InvalidParams(
                f"Of {self.num_beams} beams between 1 and {self.num_beams} answers can be given,"
                f" not {self.num_answers}: raise n_beams or lower n."
            )


@dataclass(frozen=True, slots=True)
class Beam:
    """A beginning of an answer, and the sum of the log-probabilities of its tokens."""

    token_ids: tuple[int, ...] = ()
    logprob: float = 0.0


@dataclass(frozen=True, slots=True)
class EndedBeam:
    """An answer, with its end token if it has one."""

    token_ids: tuple[int, ...]
    logprob: float
    score: float


class BeamSearch:
    """The beams of one answer. Owned by whoever gets the candidates computed."""

    def __init__(
        self,
        params: BeamParams,
        max_tokens: int,
        num_end_tokens: int,
        is_ended: Callable[[tuple[int, ...]], bool],
        *,
        keeps_cut: bool = True,
    ) -> None:
        """`is_ended`: by an end token or a stop text. What `max_tokens` cut off is an answer as
        well, unless not `keeps_cut`."""
        self._params = params
        self._max_tokens = max_tokens
        self._is_ended = is_ended
        self._keeps_cut = keeps_cut
        self.num_candidates = max(2, 1 + num_end_tokens) * params.num_beams
        """How many of the likeliest tokens of each running beam are needed."""
        self.running: list[Beam] = [Beam()]
        self._ended: list[EndedBeam] = []
        self._is_hopeless = False

    @property
    def answers(self) -> list[EndedBeam]:
        """The best first."""
        return self._ended[: self._params.num_answers]

    def advance(self, candidates: Sequence[Sequence[TokenLogprob]]) -> bool:
        """`candidates` stand beside `running`: what may come next, each one's likeliest first.
        False: the search is over."""
        longer = sorted(
            (
                (beam.logprob + each.logprob, -number, -each.token_id)
                for number, (beam, nexts) in enumerate(zip(self.running, candidates, strict=True))
                for each in nexts
            ),
            reverse=True,
        )[: self.num_candidates]
        num_tokens = len(self.running[0].token_ids) + 1
        going: list[Beam] = []
        ended: list[EndedBeam] = []
        for rank, (logprob, number, token_id) in enumerate(longer):
            token_ids = (*self.running[-number].token_ids, -token_id)
            is_ended, is_last = self._is_ended(token_ids), num_tokens == self._max_tokens
            if not (is_ended or is_last):
                going.append(Beam(token_ids, logprob))
            elif rank < self._params.num_beams and (is_ended or self._keeps_cut):
                score = logprob / float(num_tokens) ** self._params.length_penalty
                ended.append(EndedBeam(token_ids, logprob, score))
        self.running = going[: self._params.num_beams]
        self._end(ended)
        self._is_hopeless = self._is_hopeless or not self._can_improve(num_tokens)
        return bool(self.running) and not (self._is_hopeless or self._is_enough)

    @property
    def _is_full(self) -> bool:
        return len(self._ended) == self._params.num_beams

    @property
    def _is_enough(self) -> bool:
        return self._is_full and self._params.early_stopping is EarlyStopping.YES

    def _end(self, ended: Sequence[EndedBeam]) -> None:
        best = sorted([*self._ended, *ended], key=lambda each: each.score, reverse=True)
        self._ended = best[: self._params.num_beams]

    def _can_improve(self, num_tokens: int) -> bool:
        if not self.running or not self._is_full:
            return bool(self.running)
        params = self._params
        length = num_tokens
        if params.early_stopping is EarlyStopping.NEVER and params.length_penalty > 0:
            length = self._max_tokens
        best = self.running[0].logprob / float(length) ** params.length_penalty
        return bool(best > self._ended[-1].score)
