"""What the launcher shows while the app does not answer: how far it is, or what is wrong."""

import time
from dataclasses import dataclass, field
from typing import Any

from app.launch.link import Doing


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """`sentence` ends with what can be done; `offers` are names of `Wish`, the best one first."""

    sentence: str
    offers: tuple[str, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """`began` is by time.monotonic."""

    began: float = field(default_factory=time.monotonic)
    doing: Doing = Doing()
    is_safe: bool = False
    crash: str = ""
    """Why it starts again, or empty."""
    note: str = ""
    """Another sentence to be read, or empty."""
    problem: Problem | None = None
    is_over: bool = False

    def as_json(self) -> dict[str, Any]:
        """For the splash, and for a page of the app that is still open."""
        if self.is_over:
            return {"closed": True}
        if self.problem is not None:
            problem = self.problem
            return {
                "problem": {
                    "sentence": problem.sentence,
                    "detail": problem.detail,
                    "offers": list(problem.offers),
                }
            }
        return {
            "starting": {
                "steps": [{"text": text, "is_done": is_done} for text, is_done in self.steps()],
                "elapsed_s": round(time.monotonic() - self.began, 1),
                "crash": self.crash,
                "note": self.note,
                "is_safe": self.is_safe,
            }
        }

    def steps(self) -> list[tuple[str, bool]]:
        """What is done, then what is happening."""
        doing = self.doing
        if doing.waiting:
            return [(doing.waiting, False)]
        if not doing.model and not doing.page:
            return [("Starting", False)]
        model = f"Loading the model {doing.model}" if doing.model else "Loading the model"
        is_loaded = bool(doing.model) and not doing.is_loading
        return [("Starting", True), (model, is_loaded), ("Loading the page", doing.page)]
