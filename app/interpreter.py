"""Python's own lock in the app: whoever computes in Python lets the engine in soon."""

import sys

TURN_S = 0.0005
"""Python's own is ten times as long, and a token takes several turns. While documents were read a
token took 0.86 of the time with this, and 0.78 with `documents.process` behind as well (medians of
9 pairs on a busy machine)."""


def take_short_turns() -> None:
    """For a process in which an engine writes beside other work."""
    sys.setswitchinterval(TURN_S)
