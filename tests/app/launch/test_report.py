"""A report has what helps and nothing that is a person's own."""

import getpass
import json
import os
import stat
from pathlib import Path

import pytest

from app.launch.crash import Crash, Suspect
from app.launch.report import crash_report, keep_crash, kept_crashes, warning_lines
from app.owner import HomeLock
from app.paths import Paths

SECRET = "My neighbour's name is Ottilie"
CRASH = Crash(
    signal="SIGSEGV",
    cause="Inglenook was stopped by a fault in memory (SIGSEGV)",
    suspect=Suspect.MODEL,
    model="Qwen",
    lines=("Fatal Python error: Segmentation fault",),
    when="2026-11-30 12:00:00",
)


def test_what_was_said_and_who_said_it_are_not_in_a_report(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INGLENOOK_API_KEY", "a-key-of-my-own")
    monkeypatch.setenv("LOGNAME", "ottilie")
    paths.api_key.write_text("ink-0123456789abcdef\n")
    with HomeLock(paths) as lock:
        lock.try_acquire()
        address = lock.address("127.0.0.1", 7341)
        lock.announce(address)
        (paths.logs / "inglenook.log").write_text(
            f"2026-11-30 12:00:01,123 ERROR app.services: {paths.models / 'x.gguf'} is cut off\n"
            f"2026-11-30 12:00:02,123 ERROR gradio.queue: {SECRET}\n"
            f'2026-11-30 12:00:03,123 WARNING app.ui.boundary: the form "{SECRET}" is wrong\n'
            "Traceback (most recent call last):\n"
            '  File "/home/ottilie/inglenook/app/ui/chat.py", line 7, in send\n'
            f'    raise ValueError("{SECRET}")\n'
            f"ValueError: {SECRET}\n"
            "2026-11-30 12:00:04,123 WARNING engine.loading: ink-0123456789abcdef"
            f" {address.token}\n"
            "2026-11-30 12:00:05,123 WARNING engine.loading: a-key-of-my-own a@b.example\n"
        )
        paths.native_log.write_text(f"prompt: {SECRET}\nFatal Python error: Aborted\n")
        keep_crash(paths.crashes, CRASH)
        report = crash_report(paths)
    for private in ("Ottilie", "ottilie", "a-key-of-my-own", "0123456789abcdef", "b.example"):
        assert private not in report
    assert address.token not in report and str(paths.data) not in report
    for helpful in (
        "<MODELS>/x.gguf is cut off",
        "ERROR gradio.queue: …",
        "app/ui/chat.py:7 send",
        "ValueError",
        "Fatal Python error: Aborted",
        "fault in memory (SIGSEGV), at 12:00. Suspect: model.",
    ):
        assert helpful in report


def test_a_report_of_an_empty_home_says_so(tmp_path: Path) -> None:
    paths = Paths.from_environment({"INGLENOOK_HOME": str(tmp_path / "none")})
    report = crash_report(paths)
    assert report.startswith("Inglenook report\n")
    assert str(tmp_path) not in report


@pytest.mark.parametrize("user", ["me", "ab"])
def test_a_short_name_of_a_user_does_not_blacken_every_word(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: user)
    assert "Crashes, the newest first" in crash_report(paths)


def test_a_system_that_does_not_know_its_user_has_a_report_as_well(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert "Inglenook report" in crash_report(paths)


def test_the_last_crashes_are_kept_the_newest_first(paths: Paths) -> None:
    for number in range(8):
        kept = Crash.from_json(CRASH.as_json() | {"when": f"2026-11-30 12:00:0{number}"})
        keep_crash(paths.crashes, kept)
    seconds = [crash.when[-1] for crash in kept_crashes(paths.crashes)]
    assert seconds == ["7", "6", "5", "4", "3"]
    if os.name != "nt":
        assert stat.S_IMODE(paths.crashes.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}', json.dumps([{"suspect": "x"}])])
def test_a_damaged_file_of_crashes_is_none(paths: Paths, text: str) -> None:
    paths.crashes.write_text(text)
    assert kept_crashes(paths.crashes) == []


def test_a_long_warning_is_cut() -> None:
    (line,) = warning_lines("2026-11-30 12:00:01,123 ERROR app.services: " + "word " * 1000)
    assert len(line) == 300
