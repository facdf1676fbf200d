"""What is said survives every terminal."""

import io
import json
import sys
from collections.abc import Callable

import pytest

from app.commands.console import Terminal, write_json


def on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, say: Callable[[Terminal], None]) -> bytes:
    """What arrives at a terminal that knows 128 characters."""
    raw = io.BytesIO()
    with monkeypatch.context() as patch:
        stdout = io.TextIOWrapper(raw, encoding="ascii")
        patch.setattr(sys, "stdout", stdout)
        say(Terminal())
    return raw.getvalue()


def test_a_narrow_terminal_loses_a_character_and_not_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = on_a_narrow_terminal(monkeypatch, lambda terminal: terminal.write("a🙂b\ud83d\n"))
    assert said == b"a?b?\n"


def test_json_loses_nothing_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"text": "a🙂b"}
    said = on_a_narrow_terminal(monkeypatch, lambda terminal: write_json(terminal, value))
    assert json.loads(said) == value


def test_a_terminal_is_not_steered_by_what_somebody_wrote(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Terminal().write("\x1b]0;title\x07a\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    Terminal().write("\x1b]0;title\x07a\tb\n")
    assert capsys.readouterr().out == "\x1b]0;title\x07a\n�]0;title�a\tb\n"


def test_a_note_steers_no_terminal_either(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().note("\x1b]0;title\x07a\tb")
    assert capsys.readouterr().err == "\ufffd]0;title\ufffda\tb\n"


def test_a_closed_output_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        Terminal().write("nobody listens")


def test_progress_is_for_who_sits_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Terminal().progress("1 file to read")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    Terminal().progress("2 files to read")
    assert capsys.readouterr() == ("", "2 files to read\n")


def test_a_note_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().note("By the way.")
    assert capsys.readouterr() == ("", "By the way.\n")
