"""Fill a small piece of a prompt up to a tile, where that is faster.

With f16 KV and flash attention llama.cpp computes 64 queries at once; fewer are computed one by
one, and each looks at every cell of its conversation by itself. Behind a long conversation 63
tokens take far longer than 64: SmolLM2 on 2 threads, 7,000 tokens held, read 31 tokens in 2.9 s,
63 in 6.2 s and 64 in 0.9 s. So a piece is filled up with tokens that nobody keeps.
"""

from collections.abc import Sequence

from engine.backends.llama_cpp.step_batch import Part

TILE_TOKENS = 64
# The attention of one query to one cell, in one head of one layer, costs as much as the matrix
# work of a token in this many parameters: a query by itself, and one in a tile.
ALONE_PARAMETERS = 1714.0
IN_A_TILE = 0.108


class TileFiller:
    """Knows when filling pays, from the shape of a model."""

    def __init__(self, num_layers: int, num_heads: int, num_parameters: int) -> None:
        self._attention = ALONE_PARAMETERS * num_layers * num_heads / max(1, num_parameters)
        """Of one query to one cell, in units of a token's matrix work."""

    def num_tokens(self, parts: Sequence[Part], num_tokens: int) -> int:
        """How many tokens to add to these parts, which have `num_tokens`; mostly none."""
        if not 1 < num_tokens < TILE_TOKENS:
            return 0
        num_cells = sum(part.start + len(part.token_ids) for part in parts)
        num_looks = sum(
            len(part.token_ids) * (part.start + len(part.token_ids) / 2) for part in parts
        )
        alone = num_tokens + self._attention * num_looks
        in_a_tile = TILE_TOKENS * (1 + IN_A_TILE * self._attention * num_cells)
        return TILE_TOKENS - num_tokens if in_a_tile < alone else 0
