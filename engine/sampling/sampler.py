"""The sampler: a row of logits in, one token id out."""

import logging
import math

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineError
from engine.request import Request
from engine.sampling.penalties import Penalties, has_penalty
from engine.sampling.samplers import draw, min_p, top_k, top_p

logger = logging.getLogger(__name__)


class Sampler:
    """Picks the next token of each request. Owned by the engine thread.

    It never writes into the logits. Each request has its own generator, so what it draws does not
    depend on the requests beside it.
    """

    def __init__(self, num_tokens: int) -> None:
        self._num_tokens = num_tokens
        self._generators: dict[int, np.random.Generator] = {}
        self._penalties: dict[int, Penalties] = {}
        self._warned: set[int] = set()

    def sample_row(self, row: NDArray[np.float32], request: Request) -> int:
        """The next token of one request; `EngineError` when `row` predicts nothing."""
        params = request.params
        row = row[: self._num_tokens]
        if has_penalty(params):
            row = self._penalties_of(request).apply(row, request.token_ids)
        # NaN wins an argmax, so the chosen value alone tells whether the row needs a closer look.
        best = int(row.argmax())
        if not math.isfinite(row[best]):
            row = self._usable(row, request)
            best = int(row.argmax())
        if params.is_greedy:
            return best
        highest = float(row[best])
        ids = None
        if 0 < params.top_k < len(row):
            ids = top_k(row, params.top_k)
            row = row[ids]
        if params.top_p < 1.0:
            kept = top_p(row, params.top_p, highest)
            ids, row = kept if ids is None else ids[kept], row[kept]
        if params.min_p > 0.0:
            kept = min_p(row, params.min_p, highest)
            ids, row = kept if ids is None else ids[kept], row[kept]
        index = draw(row, params.temperature, highest, self._generator_of(request))
        return index if ids is None else int(ids[index])

    def forget(self, request_id: int) -> None:
        """Drop what is kept for a request; nothing happens when nothing is kept."""
        self._generators.pop(request_id, None)
        self._penalties.pop(request_id, None)
        self._warned.discard(request_id)

    def _usable(self, row: NDArray[np.float32], request: Request) -> NDArray[np.float32]:
        """A copy of `row` whose largest logit is finite."""
        certain = np.isposinf(row)
        if certain.any():
            return np.where(certain, np.float32(0), np.float32(-math.inf))
        broken = np.isnan(row)
        if broken.any() and request.request_id not in self._warned:
            self._warned.add(request.request_id)
            logger.warning(
                "Request %d: %d of %d logits are not numbers; they are left out.",
                request.request_id,
                np.count_nonzero(broken),
                len(row),
            )
        row = np.where(broken, np.float32(-math.inf), row)
        if np.isneginf(row).all():
            raise EngineError(
                f"The model computed no usable number for any of its {len(row):,} tokens, so this"
                " answer ends here: try again, and if it happens again the model file is damaged"
                " or does not suit this machine."
            )
        return row

    def _generator_of(self, request: Request) -> np.random.Generator:
        generator = self._generators.get(request.request_id)
        if generator is None:
            generator = np.random.default_rng(request.params.seed)
            self._generators[request.request_id] = generator
        return generator

    def _penalties_of(self, request: Request) -> Penalties:
        penalties = self._penalties.get(request.request_id)
        if penalties is None:
            penalties = Penalties(request.params, request.num_prompt_tokens, request.num_tokens)
            self._penalties[request.request_id] = penalties
        return penalties
