"""The measures of a model that its memory and its speed follow from, loaded or not."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.backends.llama_cpp.kv_type import KVShape, KVType
from engine.backends.llama_cpp.mmproj_file import mmproj_bytes
from engine.batch import MAX_GUESSED
from engine.config import EngineConfig

WORD_BYTES = 80
"""What llama.cpp keeps for each word: about 20 MB for the 262,144 of gemma-3-270m, measured."""
MAX_TWINS = 127
"""llama.cpp knows 256 sequences: the scratch, and two for each of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextShape:
    """What the memory of a context follows from.

    `width` is how many numbers go from layer to layer for each token, `widest_layer` how many a
    feed-forward layer has in the middle, `window_tokens` how far back sliding layers look (0:
    there are none).
    """

    width: int
    widest_layer: int
    num_words: int
    window_tokens: int
    kv: KVShape

    @property
    def is_cut_anywhere(self) -> bool:
        """False where some of the state is one whole, as recurrent layers have it."""
        return self.kv.is_exact

    def num_ids(self, max_sequences: int) -> int:
        """The sequences that llama.cpp is given for so many of ours: a scratch beside them, and
        with a sliding window a twin of each, or cells that have left it would be lost."""
        if not self.is_cut_anywhere:
            return max_sequences
        if self.window_tokens:
            return 2 * min(max_sequences, MAX_TWINS) + 1
        return max_sequences + 1

    def num_bytes(
        self, *, num_cells: int, num_ids: int, max_batch_tokens: int, kv_type: KVType
    ) -> int:
        """The KV, exactly, and about what a step needs: what its layers hand on, which cell each
        token sees, and a row of logits for each sequence and for each token that is guessed.

        The KV of models with recurrent layers is an upper bound, which may be far from the truth.
        """
        kv = num_cells * self.kv.bytes_per_token(kv_type)
        rows = 4 * (num_ids + 1 + MAX_GUESSED) * self.num_words
        # Two numbers of four bytes for each of the widest layer, and six for each of the model:
        # what SmolLM2 took with batches of 64, 256 and 512 tokens.
        per_token = 4 * (2 * self.widest_layer + 6 * self.width) + 2 * num_cells
        return kv + rows + max_batch_tokens * per_token

    def bytes_for(self, config: EngineConfig, trained_context: int) -> int:
        """What the context of a model takes that is loaded so. Raises InvalidParams."""
        return self.num_bytes(
            num_cells=config.num_cells(trained_context),
            num_ids=self.num_ids(config.max_sequences),
            max_batch_tokens=config.max_batch_tokens,
            kv_type=self.kv.choose(config.kv_type),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A model as far as its fit is concerned. `num_bytes` are its weights.

    `multiplied` says of each type of its weights (by its name in ggml) how many of them one token
    is multiplied with: all but the table of words, and of experts only those that are asked. They
    have `read_bytes`.
    """

    num_bytes: int
    num_parameters: int
    multiplied: Mapping[str, int]
    read_bytes: int
    num_layers: int
    trained_context: int
    context: ContextShape

    def memory_bytes(self, config: EngineConfig) -> int:
        """All that the model takes when it is loaded so. Raises InvalidParams."""
        words = WORD_BYTES * self.context.num_words
        weights = self.num_bytes + words + config.adapter_bytes
        media = mmproj_bytes(config.mmproj_path)
        return weights + media + self.context.bytes_for(config, self.trained_context)
