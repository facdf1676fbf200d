"""Fill a small piece of a prompt up to a tile, where that is faster.

With f16 KV and flash attention llama.cpp computes 64 queries at once; fewer are computed one by
one, and each looks at every cell of its conversation by itself. How much that costs is a matter of
the processor: behind 7,000 tokens SmolLM2 read 31 more on 2 threads in 0.7 s on one machine, where
a tile took 0.8 s, and in 2.9 s on another, where it took 0.9 s. So the times of the steps decide. A
piece is filled up with tokens that nobody keeps.
"""

from collections.abc import Sequence

from engine.backends.llama_cpp.step_batch import Part

TILE_TOKENS = 64
# Up to here the attention is a small part of a tile's time.
SHALLOW_CELLS = 512
# The arithmetic of attention in a tile takes so much longer than that of the matrix work. Both
# machines above agree about it.
IN_A_TILE = 1.5
# How much better filling must be, so that it does not come and go with the noise.
MARGIN = 0.8
WEIGHT = 0.3
# Where time may not decide: in the middle between never and always gaining from it.
FIXED_LEAST = 24


class TileFiller:
    """Learns from the times of steps what filling would cost. Owned by the engine thread.

    A look is one query at one cell. Times in seconds; None: not seen yet.
    """

    def __init__(self, num_layers: int, num_dimensions: int, num_parameters: int) -> None:
        """`num_dimensions`: of all heads of a layer together."""
        # 4 operations for each dimension, and 2 for each parameter.
        self._look_per_token = 2.0 * num_layers * num_dimensions / max(1, num_parameters)
        self._token: float | None = None
        self._look_alone: float | None = None
        self._look_in_tile: float | None = None

    def num_tokens(self, parts: Sequence[Part], num_tokens: int, *, is_fixed: bool = False) -> int:
        """How many tokens to add to these parts, which have `num_tokens`; mostly none.

        `is_fixed`: it must not depend on what was learned, so that the bits do not.
        """
        if not 1 < num_tokens < TILE_TOKENS:
            return 0
        if is_fixed:
            return TILE_TOKENS - num_tokens if num_tokens >= FIXED_LEAST else 0
        if self._token is None or self._look_alone is None:
            return 0
        in_tile = self._look_in_tile
        if in_tile is None:
            in_tile = IN_A_TILE * self._look_per_token * self._token
        alone = num_tokens * self._token + _num_looks(parts) * self._look_alone
        filled = TILE_TOKENS * (self._token + _num_cells(parts) * in_tile)
        return TILE_TOKENS - num_tokens if filled < MARGIN * alone else 0

    def learn(self, parts: Sequence[Part], num_tokens: int, seconds: float) -> None:
        """`num_tokens` were computed in this time, with those that filled a tile."""
        num_cells = _num_cells(parts)
        if num_tokens >= TILE_TOKENS:
            if num_cells <= SHALLOW_CELLS:
                self._token = _blended(self._token, seconds / num_tokens)
            elif self._token is not None:
                rest = seconds - num_tokens * self._token
                self._look_in_tile = _blended(self._look_in_tile, rest / (num_tokens * num_cells))
        elif num_tokens > 1 and self._token is not None and num_cells > SHALLOW_CELLS:
            rest = seconds - num_tokens * self._token
            self._look_alone = _blended(self._look_alone, rest / _num_looks(parts))


def _num_cells(parts: Sequence[Part]) -> int:
    return sum(part.start + len(part.token_ids) for part in parts)


def _num_looks(parts: Sequence[Part]) -> float:
    return sum(len(part.token_ids) * (part.start + len(part.token_ids) / 2) for part in parts)


def _blended(known: float | None, seen: float) -> float:
    seen = max(0.0, seen)
    return seen if known is None else (1 - WEIGHT) * known + WEIGHT * seen
