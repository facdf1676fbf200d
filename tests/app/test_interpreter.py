"""The engine does not wait long for whoever computes in Python."""

import sys

from app.interpreter import TURN_S, take_short_turns


def test_turns_are_short_where_an_engine_writes() -> None:
    before = sys.getswitchinterval()
    try:
        # As it is in a new process: another test may have run a command in this one.
        sys.setswitchinterval(0.005)
        take_short_turns()
        assert abs(sys.getswitchinterval() - TURN_S) < 1e-6
    finally:
        sys.setswitchinterval(before)
