"""A port is the one that was asked for, or the next free one, and belongs to nobody else."""

import socket
from contextlib import ExitStack, suppress

import pytest

from app.web.port import PREFERRED_PORT, bind
from engine.errors import PortTaken


def test_a_port_that_was_asked_for_and_is_taken_is_an_error() -> None:
    with bind(port=0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=f"Port {port} .*--port"):
            bind(port=port)


def test_without_a_wish_the_next_free_port_is_taken() -> None:
    with bind() as first, bind() as second:
        assert first.getsockname()[1] != second.getsockname()[1]


def test_a_port_that_is_not_ours_is_explained_in_one_sentence() -> None:
    said: list[str] = []
    with ExitStack() as taken:
        # Somebody may have it already, which is as good.
        with suppress(PortTaken):
            taken.enter_context(bind(port=PREFERRED_PORT))
        with bind(say=said.append) as sock:
            port = sock.getsockname()[1]
    (sentence,) = said
    assert sentence.startswith(f"Port {PREFERRED_PORT} cannot be used (")
    assert sentence.endswith(f", so this time it is port {port}: --port N chooses one.")


def test_the_port_that_was_asked_for_needs_no_word() -> None:
    said: list[str] = []
    with bind(port=0, say=said.append):
        assert not said


def test_a_bound_port_is_taken_for_everyone() -> None:
    """Also before anybody answers on it."""
    with bind(port=0) as bound, socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError):
            other.bind(bound.getsockname())
