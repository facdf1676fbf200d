"""Prompts for benchmarks: random tokens from a fixed seed, so that no two share a beginning."""

from dataclasses import dataclass

import numpy as np

from engine.sampling_params import SamplingParams
from engine.tokenizer import Tokenizer

SEED = 20240229


@dataclass(frozen=True, slots=True)
class Generation:
    """One request: a prompt, and how many tokens are written to it whatever they are."""

    prompt: tuple[int, ...]
    num_tokens: int

    @property
    def params(self) -> SamplingParams:
        return SamplingParams(
            temperature=0.0, max_tokens=self.num_tokens, ignore_eos=True, loop_guard=False
        )


class Prompts:
    """Random prompts of a vocabulary; nothing an earlier prompt left in a cache helps a later one.

    The same seed and the same calls give the same prompts.
    """

    def __init__(self, tokenizer: Tokenizer, seed: int = SEED) -> None:
        controls = {token.token_id for token in tokenizer.control_tokens.values()}
        self._ids = np.array(
            [token for token in range(tokenizer.num_tokens) if token not in controls], np.int64
        )
        self._generator = np.random.default_rng(seed)

    def prompt(self, num_tokens: int) -> tuple[int, ...]:
        return tuple(self._generator.choice(self._ids, num_tokens).tolist())

    def generations(self, num: int, prompt_tokens: int, num_tokens: int) -> list[Generation]:
        return [Generation(self.prompt(prompt_tokens), num_tokens) for _ in range(num)]
