"""How the app is started: what holds for every start, and what for this one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How the app is started this time; `model` goes before the chosen one. `crash` and
    `card_failure`: the sentences about why it starts again, and why the graphics card is left
    alone, or empty."""

    is_safe: bool = False
    model: str = ""
    crash: str = ""
    card_failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`model`, `draft_model`, `adapters` (FILE or FILE:SCALE), `mmproj` and `backend` are named to
    the app; `command` starts a program that knows `run`, empty: ours."""

    opens_window: bool = True
    is_safe: bool = False
    model: str = ""
    draft_model: str = ""
    adapters: tuple[str, ...] = ()
    mmproj: str = ""
    backend: str = "auto"
    command: tuple[str, ...] = ()

    def arguments(self, start: Start) -> tuple[str, ...]:
        """What the program is started with."""
        given = ["run", "--launched", "--no-open"]
        if model := start.model or self.model:
            given += ["--model", model]
        # They were named for that model, and for no other that takes its place.
        if not start.model:
            if self.draft_model:
                given += ["--draft-model", self.draft_model]
            for adapter in self.adapters:
                given += ["--lora", adapter]
            if self.mmproj:
                given += ["--mmproj", self.mmproj]
        if self.backend != "auto":
            given += ["--backend", self.backend]
        if start.is_safe:
            given.append("--safe")
        return tuple(given)
