"""One answer in a form, asked for again while it does not satisfy what could not be enforced."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.guided.answer import Guidance
from engine.guided.validator import AnswerValidator
from engine.sampling_params import MOST_ANSWERS, SamplingParams

MOST_TRIES = 3
# The same choices would give the same answer again.
LEAST_TEMPERATURE = 0.7


@dataclass(frozen=True, slots=True)
class Check:
    """What became of an answer: `unenforced` could not be seen to while it was written, and
    `fault` is what is wrong with it, or empty."""

    unenforced: str
    fault: str

    @property
    def is_right(self) -> bool:
        return not self.fault

    def as_json(self) -> dict[str, Any]:
        return {"valid": self.is_right, "fault": self.fault}

    @property
    def notice(self) -> str:
        if not self.is_right:
            return (
                f"This answer does not satisfy its schema: {self.fault}. The schema could not be"
                f" enforced as a whole ({self.unenforced})."
            )
        return (
            "This answer satisfies its schema. That was checked afterwards, because it could not be"
            f" enforced as a whole ({self.unenforced})."
        )


class Checker:
    """Of the answers to one question; does nothing where the form is enforced."""

    def __init__(self, guidance: Guidance | None) -> None:
        compiled = None if guidance is None else guidance.grammar
        self._unenforced = "" if compiled is None else compiled.unenforced
        self._validator = None
        if compiled is not None and self._unenforced:
            self._validator = AnswerValidator(compiled.grammar.source)

    @property
    def is_needed(self) -> bool:
        return self._validator is not None

    async def check(self, content: str) -> Check | None:
        """None: there is nothing to check."""
        if self._validator is None:
            return None
        # A pattern of somebody else's may take its time.
        fault = await asyncio.to_thread(self._validator.fault_of, content)
        return Check(self._unenforced, fault)

    def tries(self, params: SamplingParams) -> Sequence[SamplingParams]:
        """How to ask, one time after the other, until an answer is right."""
        if self._validator is None:
            return [params]
        again = replace(params, temperature=max(params.temperature, LEAST_TEMPERATURE))
        # Others than those of further answers to the same prompt.
        seeds = [
            None if params.seed is None else (params.seed + n * MOST_ANSWERS) % 2**64
            for n in range(1, MOST_TRIES)
        ]
        return [params, *(replace(again, seed=seed) for seed in seeds)]
