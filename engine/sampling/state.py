"""What the sampler remembers of one request, so that it can be copied and gone back to."""

from collections.abc import Sequence

import numpy as np

from engine.sampling.adaptive import AdaptiveP
from engine.sampling.bans import BannedPhrases, LogitBias
from engine.sampling.mirostat import Mirostat
from engine.sampling.penalties import Penalties, has_penalty
from engine.sampling.repeats import Dry
from engine.sampling.token_history import TokenHistory
from engine.sampling.vocabulary import SamplingVocabulary
from engine.sampling_params import SamplingParams


class SamplerState:
    """Owned by the sampler, one for each request. Only what the params need is there.

    Counts, runs and phrases follow the request's tokens by themselves. To go back to an earlier
    token, keep a `copy` of the state from there.
    """

    def __init__(
        self,
        params: SamplingParams,
        vocabulary: SamplingVocabulary,
        num_prompt_tokens: int,
        num_tokens: int,
    ) -> None:
        self.params = params
        self.vocabulary = vocabulary
        self.num_prompt_tokens = num_prompt_tokens
        self.generator = np.random.default_rng(params.seed)
        self.bias = LogitBias(params.logit_bias) if params.logit_bias else None
        self.phrases = (
            BannedPhrases(params.banned_phrases, vocabulary, num_prompt_tokens)
            if params.banned_phrases
            else None
        )
        self.penalties = (
            Penalties(params, num_prompt_tokens, num_tokens) if has_penalty(params) else None
        )
        self.dry = Dry(params, vocabulary) if params.dry_multiplier else None
        needs_history = params.dry_multiplier or params.no_repeat_ngram_size
        self.history = TokenHistory() if needs_history else None
        self.mirostat = (
            Mirostat(
                params.mirostat, params.mirostat_tau, params.mirostat_eta, vocabulary.num_tokens
            )
            if params.mirostat
            else None
        )
        self.adaptive = (
            AdaptiveP(params.adaptive_target, params.adaptive_decay)
            if params.adaptive_target
            else None
        )

    @property
    def has_bans(self) -> bool:
        """Something may not come, or is pushed."""
        return bool(self.bias or self.phrases or self.params.min_tokens)

    @property
    def has_penalties(self) -> bool:
        return bool(self.penalties or self.history)

    def copy(self) -> "SamplerState":
        """Nothing that happens to one of the two is seen in the other; both draw the same next."""
        other: SamplerState = object.__new__(SamplerState)
        other.params, other.vocabulary = self.params, self.vocabulary
        other.num_prompt_tokens, other.bias = self.num_prompt_tokens, self.bias
        other.generator = _copy_of(self.generator)
        other.phrases = None if self.phrases is None else self.phrases.copy()
        other.penalties = None if self.penalties is None else self.penalties.copy()
        other.dry = None if self.dry is None else self.dry.copy()
        other.history = None if self.history is None else self.history.copy()
        other.mirostat = None if self.mirostat is None else self.mirostat.copy()
        other.adaptive = None if self.adaptive is None else self.adaptive.copy()
        return other

    def forbids(self, token_id: int, token_ids: Sequence[int]) -> bool:
        """Whether a bias or a phrase bans a token after `token_ids`."""
        if self.bias is not None and token_id in self.bias.banned:
            return True
        if self.phrases is None:
            return False
        self.phrases.follow(token_ids)
        return any(token_id in ids for ids in self.phrases.completing())


def _copy_of(generator: np.random.Generator) -> np.random.Generator:
    bits = type(generator.bit_generator)()
    bits.state = generator.bit_generator.state
    return np.random.Generator(bits)
