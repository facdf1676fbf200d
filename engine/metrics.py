"""What a generation cost: the user's proof and the tests' oracle."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Times in milliseconds, counts in tokens.

    `cached_tokens` of the prompt were in the cells of the model, `restored_tokens` came back from
    the store (`restored_from`: "ram", "disk" when some came from there, or empty) in `restore_ms`,
    `prefilled_tokens` were computed. `begun_tokens` were given as the answer's beginning, and are
    not among its `completion_tokens`. Of the answer `forced_tokens` were what its form leaves no
    choice about, read together; and `accepted_tokens` of `drafted_tokens` that were guessed were
    what came. `finish` is the engine's own word for the end.
    `is_reproducible`: the same prompt would give the same text again.
    """

    prefilled_tokens: int = 0
    cached_tokens: int = 0
    restored_tokens: int = 0
    restored_from: str = ""
    restore_ms: float = 0.0
    begun_tokens: int = 0
    forced_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    completion_tokens: int = 0
    ttft_ms: float = 0.0
    tpot_ms: float = 0.0
    queue_ms: float = 0.0
    finish: str = ""
    is_reproducible: bool = False

    @property
    def prompt_tokens(self) -> int:
        return self.prefilled_tokens + self.cached_tokens + self.restored_tokens

    @property
    def tokens_per_second(self) -> float:
        """Decoding speed after the first token; 0 when there was none to measure."""
        return 1000.0 / self.tpot_ms if self.tpot_ms > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def usage(self) -> dict[str, Any]:
        """The `usage` object of OpenAI's chat completions."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens + self.restored_tokens},
        }
