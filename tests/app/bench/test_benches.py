"""Every benchmark runs in small and ends with a line that a program can read."""

import json
from pathlib import Path

import pytest

from app import cli
from app.bench.benches import BENCHES
from app.bench.llama_server import last_timings
from app.bench.start import queued
from engine.errors import EngineError
from tests.chromium import find_chromium

SMALL = {
    "decode": "--tokens 4 --pairs 1 --prompt 4 --context 512 --streams 1 2",
    "batching": "--requests 2 --longest 3 --pairs 1 --minutes 0 --context 2048",
    "chats": "--only W1 --turns 2 --pairs 2 --tokens 4 --context 512",
    "tiers": "--first 40 --more 20 --answer 3 --turns 2 --pairs 1 --minutes 0 --context 1024",
    "sampling": "--tokens 600 --pairs 1 --minutes 0",
    "guided": "--forms 1 --pairs 1 --minutes 0",
    "speculate": "--works 1 --tokens 12 --pairs 1 --minutes 0",
    "docs": (
        "--pages 6 --long 8 --files 12 --passages 300 --questions 4 --times 1 --tokens 3"
        " --pairs 1 --minutes 0 --context 512"
    ),
    "fit": "--random 1 --pairs 1 --minutes 0 --tokens 4 --context 1024",
    "start": "--pairs 1 --minutes 0",
    "whole": "--tokens 300 --context 2048 --pairs 1 --minutes 0",
}


@pytest.mark.model
@pytest.mark.parametrize("name", SMALL)
def test_the_last_line_is_the_report(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", name, *SMALL[name].split()]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["bench"] == name
    assert report["machine"]["cores"] >= 1
    assert report["rows"]


@pytest.mark.model
@pytest.mark.browser
def test_the_page_is_measured_in_a_browser(capsys: pytest.CaptureFixture[str]) -> None:
    browser = find_chromium()
    assert browser is not None, "no Chromium was found"
    small = ["--messages", "12", "--pairs", "1", "--minutes", "0", "--chromium", browser]
    assert cli.main(["bench", "page", *small]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [row["messages"] for row in report["rows"]] == [12, 10, 12, 10, None]


def test_every_benchmark_is_tried_in_small() -> None:
    assert set(BENCHES) == {*SMALL, "page"}


@pytest.mark.model
def test_a_busy_trial_in_small_tells_all_three_phases(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.bench import busy

    for name in ("BEFORE", "DURING", "AFTER"):
        monkeypatch.setattr(busy, name, 48)
    assert cli.main(["bench", "decode", "--busy", "--pairs", "1", "--minutes", "0"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    phases = [row["measure"].split(",")[0] for row in report["rows"]]
    assert phases[:4] == ["idle", "busy", "idle", "after"]
    assert set(phases[4:]) == {"before", "during", "after"}


def test_a_benchmark_makes_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("INGLENOOK_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bench", "decode", "--server", "nowhere", "--context", "512"]) == 2
    assert not home.exists()


def test_an_unknown_benchmark_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "nonsense"])
    assert ended.value.code == 2
    assert "decode" in capsys.readouterr().err


def test_the_help_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bench", "--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in BENCHES)


def test_the_timings_are_in_the_last_event_that_has_them() -> None:
    stream = b'HTTP/1.1 200 OK\r\n\r\ndata: {"content": "a"}\n\ndata: {"timings": {"n": 2}}\n\n'
    assert last_timings(stream) == {"n": 2}
    with pytest.raises(EngineError, match="refused"):
        last_timings(b"HTTP/1.1 400 Bad Request\r\n\r\nno")


def test_the_queued_event_of_the_page_is_found() -> None:
    events = [
        {"id": 0, "backend_fn": True, "queue": False, "outputs": [7]},
        {"id": 1, "backend_fn": False, "queue": None, "outputs": [7]},
        {"id": 2, "backend_fn": True, "queue": None, "outputs": []},
        {"id": 3, "backend_fn": True, "queue": None, "outputs": [7]},
    ]
    assert queued({"dependencies": events})["id"] == 3
