"""How this run of the app was started, for the page that says it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFacts:
    """`crash` is the sentence about why it was started again, or empty; `note` another
    one of the launcher's. `is_launched`: there is a launcher, which can start it once more."""

    is_safe: bool = False
    is_launched: bool = False
    crash: str = ""
    note: str = ""
