"""Which program the launcher starts: the environment for the graphics card, or its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.cuda.environment import ANEW, Environment
from app.launch.child import End
from app.launch.crash import Crash, Suspect, crash_of
from app.launch.watchdog import was_wanted
from app.models.starter import PLACE, starter_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`command` knows `run`. `note`: why it is not the one for the graphics card although that is
    installed, or empty."""

    command: tuple[str, ...]
    is_for_card: bool = False
    note: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


def choose(environment: Environment, own: Sequence[str], *, is_safe: bool, failure: str) -> Program:
    """`failure`: how the one for the graphics card ended in this run of the launcher, or empty."""
    if is_safe:
        return Program(command=tuple(own))
    note = failure or environment.obstacle()
    if note or environment.made() is None:
        return Program(command=tuple(own), note=note)
    starter = starter_model()
    return Program(
        command=environment.command,
        is_for_card=True,
        environment={} if starter is None else {PLACE: str(starter)},
    )


def failed_start(end: End, is_ready: bool, when: str) -> Crash | None:
    """How the one for the graphics card failed, if it did so by itself: before it answered, while
    it loaded the model, or by the card. None: what follows is as usual."""
    if end.failed or was_wanted(end):
        return None
    crash = crash_of(end, when)
    if is_ready and not end.doing.is_loading and crash.suspect is not Suspect.GPU:
        return None
    return crash


def failure_words(cause: str) -> str:
    return (
        f"What is installed for the graphics card could not be used ({cause}), so the processor"
        f" computes: `inglenook cuda remove --yes` removes it, and {ANEW}."
    )
