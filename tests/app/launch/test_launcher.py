"""A launcher and an app that really dies: the door is never closed, and the cause is named."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cuda.environment import Environment, Made, python_in
from app.launch.report import kept_crashes
from app.owner import HomeLock, launcher_address
from app.paths import Paths
from app.version import VERSION
from tests.launched import ROOT, Launched
from tests.ports import held_port

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")

FAKE_APP = (sys.executable, str(ROOT / "tests" / "fake_app.py"))


def launched(home: Path, *arguments: str, **more: Any) -> Launched:
    return Launched(home, *arguments, command=FAKE_APP, **more)


@pytest.fixture
def app(home: Path) -> Iterator[Launched]:
    with launched(home) as app:
        app.until_ready()
        yield app


def kept(home: Path) -> list[str]:
    paths = Paths.from_environment({"INGLENOOK_HOME": str(home)})
    return [crash.sentence for crash in kept_crashes(paths.crashes)]


def test_the_app_answers_at_the_address_of_the_splash(home: Path) -> None:
    with launched(home) as app:
        # From here on every connection is taken, by the one or by the other.
        assert app.get("/")[0] == 200
        app.until_ready()
        assert app.state()["arguments"] == ["run", "--launched", "--no-open"]
        assert app.state()["backtrace"] == "1"


def test_what_libraries_print_is_no_word_of_the_app(app: Launched) -> None:
    first = app.until_ready()
    app.get("/print")
    assert app.until_ready() == first
    assert "not meant for" in (app.home / "logs" / "native.log").read_text()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("SIGSEGV", "a fault in memory (SIGSEGV) while Qwen 7B was writing"),
        ("SIGABRT", "a failed check in a library (SIGABRT) while Qwen 7B was writing"),
        ("SIGILL", "an instruction that this processor does not have (SIGILL)"),
        ("SIGKILL", "something outside of it that ended it (SIGKILL)"),
    ],
)
def test_an_app_that_was_killed_comes_back_and_says_why(
    app: Launched, name: str, words: str
) -> None:
    first, port = app.until_ready(), app.port
    app.get(f"/die?signal={getattr(signal, name).value}")
    app.until_ready(but=first)
    assert app.port == port
    assert words in app.state()["crash"]
    assert words in kept(app.home)[0]


def test_an_app_whose_home_was_deleted_comes_back_with_a_new_one(app: Launched) -> None:
    first, port = app.until_ready(), app.port
    shutil.rmtree(app.home)
    os.kill(int(first), signal.SIGKILL)
    app.until_ready(but=first)
    assert app.port == port
    assert kept(app.home)
    paths = Paths.from_environment({"INGLENOOK_HOME": str(app.home)})
    note = launcher_address(paths)
    assert note is not None and note.pid == app.process.pid
    assert not HomeLock.of_launcher(paths).try_acquire()


def test_a_home_that_another_one_has_by_now_is_not_taken_from_it(app: Launched) -> None:
    first = app.until_ready()
    shutil.rmtree(app.home)
    paths = Paths.from_environment({"INGLENOOK_HOME": str(app.home)})
    paths.create()
    with HomeLock.of_launcher(paths) as other:
        assert other.try_acquire()
        os.kill(int(first), signal.SIGKILL)
        problem = app.until_problem()
        assert "Another Inglenook was started in" in problem["sentence"]
    app.press("/_app/restart")
    app.until_ready(but=first)


def test_a_failed_check_is_in_the_report_and_what_was_said_is_not(app: Launched) -> None:
    first = app.until_ready()
    app.get("/say?line=/src/ggml.c:1:%20GGML_ASSERT(x)%20failed")
    app.get("/say?line=my%20secret")
    app.get(f"/die?signal={signal.SIGABRT.value}")
    app.until_ready(but=first)
    paths = Paths.from_environment({"INGLENOOK_HOME": str(app.home)})
    lines = kept_crashes(paths.crashes)[0].lines
    assert "/src/ggml.c:1: GGML_ASSERT(x) failed" in lines
    assert "Fatal Python error: Aborted" in lines
    assert not any("secret" in line for line in lines)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/fault?what=MemoryError", "too little memory"),
        ("/fault?what=RuntimeError:%20CUDA%20error", "a fault of the graphics card"),
        ("/exit?code=7", "an error that nobody expected (exit code 7)"),
    ],
)
def test_an_app_that_gave_up_comes_back_and_says_why(app: Launched, path: str, words: str) -> None:
    first = app.until_ready()
    app.get(path)
    app.until_ready(but=first)
    assert words in app.state()["crash"]


def test_after_two_crashes_it_asks_and_safe_mode_is_safe(home: Path) -> None:
    (home / "dies").touch()
    with launched(home) as app:
        problem = app.until_problem()
        assert "while it loaded the model Qwen 7B" in problem["sentence"]
        assert "It happened twice" in problem["sentence"]
        assert "the starter model" in problem["sentence"]
        assert problem["detail"] == "Suspect: the model."
        assert problem["offers"] == ["safe", "restart", "logs", "report", "quit"]
        assert len(kept(home)) == 2
        assert app.press("/_app/restart?safe=1") == 200
        app.until_ready()
        usual = ["run", "--launched", "--no-open"]
        assert app.state()["arguments"] == [*usual, "--model", "starter", "--safe"]
        (home / "dies").unlink()
        safe = app.until_ready()
        app.get("/ask?wish=restart")
        app.until_ready(but=safe)
        assert app.state()["arguments"] == usual


def test_after_two_crashes_in_safe_mode_it_does_not_offer_the_same(home: Path) -> None:
    with launched(home, "--safe") as app:
        first = app.until_ready()
        app.get("/die?signal=11")
        second = app.until_ready(but=first)
        assert "--safe" in app.state()["arguments"]
        app.get("/die?signal=11")
        problem = app.until_problem()
        assert "in safe mode: choose another model" in problem["sentence"]
        assert problem["offers"] == ["restart", "logs", "report", "quit"]
        app.press("/_app/restart")
        app.until_ready(but=second)
        assert "--safe" in app.state()["arguments"]


def test_without_a_browser_the_address_is_said(home: Path) -> None:
    nothing = {"PATH": "", "DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}
    with Launched(home, command=FAKE_APP, environment=nothing, opens=True) as app:
        app.until_ready()
        app.get("/ask?wish=quit")
        code, said = app.end()
    assert code == 0
    assert f"Open {app.url} in a browser on this computer" in said


def test_trying_again_is_as_usual(home: Path) -> None:
    (home / "dies").touch()
    with launched(home) as app:
        app.until_problem()
        (home / "dies").unlink()
        app.press("/_app/restart")
        app.until_ready()
        assert app.state()["arguments"] == ["run", "--launched", "--no-open"]
        assert app.state()["crash"] == ""


def test_what_the_app_says_itself_is_shown_until_it_is_mended(home: Path) -> None:
    sentence = "The history is damaged: put a backup in its place."
    (home / "fails").write_text(sentence)
    with launched(home) as app:
        problem = app.until_problem()
        assert problem["sentence"] == sentence
        assert problem["offers"] == ["restart", "logs", "report", "quit"]
        app.press("/_app/restart")
        assert app.until_problem()["sentence"] == sentence
        (home / "fails").unlink()
        app.press("/_app/restart")
        app.until_ready()
    assert kept(home) == []


def test_safe_mode_and_a_model_can_be_asked_for(home: Path) -> None:
    with launched(home, "--safe", "--model", "x.gguf") as app:
        app.until_ready()
        assert app.state()["arguments"][3:] == ["--model", "x.gguf", "--safe"]


def test_quitting_ends_both_and_leaves_no_note(app: Launched) -> None:
    app.get("/ask?wish=quit")
    code, said = app.end()
    assert code == 0
    # Somebody else may have the usual port, which would be said before.
    assert said.splitlines()[-1] == "Inglenook is ready: http://here"
    assert (app.home / "ended").exists()
    assert not (app.home / "data" / "launcher.json").exists()


def test_quit_works_while_something_is_wrong(home: Path) -> None:
    (home / "fails").write_text("No.")
    with launched(home) as app:
        app.until_problem()
        app.press("/_app/quit")
        code, said = app.end()
        assert code == 0
        # No window shows the page, so its address is said.
        ways = f"Try again or quit at {app.url}, or quit here with Ctrl-C."
        assert said.splitlines()[-2:] == ["No.", ways]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_ends_both_in_order(home: Path, name: str) -> None:
    # Whoever runs the tests in the background has the interrupt switched off, and hands it on.
    with launched(home, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as app:
        app.until_ready()
        app.process.send_signal(getattr(signal, name))
        assert app.end()[0] == 0
        assert (home / "ended").exists()


def test_an_app_that_somebody_ends_is_not_started_again(app: Launched) -> None:
    os.kill(int(app.until_ready()), signal.SIGTERM)
    assert app.end()[0] == 0


def test_an_app_without_its_launcher_ends_and_leaves_room_for_the_next(app: Launched) -> None:
    app.process.kill()
    app.process.wait(10)
    deadline = time.monotonic() + 20
    while not (app.home / "ended").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    # Its note and its lock are no obstacle.
    with launched(app.home) as second:
        second.until_ready()


def test_a_second_click_ends_well_and_the_first_goes_on(app: Launched) -> None:
    first = app.until_ready()
    second = Launched(app.home, command=FAKE_APP)
    assert second.end() == (0, f"Inglenook is running already: {app.url}\n")
    assert app.until_ready() == first


def test_a_second_click_while_the_first_asks_something_finds_it(home: Path) -> None:
    (home / "fails").write_text("No.")
    with launched(home) as app:
        app.until_problem()
        assert Launched(home, command=FAKE_APP).end()[0] == 0


def install_for_card(home: Path, program: str, version: str = VERSION) -> Environment:
    """An environment whose Python is this shell script."""
    (home / "data").mkdir(parents=True, exist_ok=True)
    environment = Environment(home / "data" / "cuda")
    new = environment.new_folder()
    python = python_in(new)
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o700)
    with environment.alone():
        environment.take(new, Made(version=version, torch="2", python="3.11.7", num_bytes=1))
    return environment


# As -I does, it leaves out three arguments of Python's own.
ON_THE_CARD = f'shift 3; exec {shlex.join(FAKE_APP)} "$@"'


def test_the_app_is_started_from_what_is_installed_for_the_card(home: Path, starter: Path) -> None:
    install_for_card(home, ON_THE_CARD)
    with launched(home) as app:
        app.until_ready()
        state = app.state()
        assert state["starter"] == str(starter) and state["note"] == ""
        assert state["arguments"] == ["run", "--launched", "--no-open"]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("exit 1", "an error that nobody expected (exit code 1)"),
        ("kill -SEGV $$", "a fault in memory (SIGSEGV)"),
    ],
)
def test_what_cannot_be_started_for_the_card_is_left_alone_and_that_is_said(
    home: Path, program: str, words: str
) -> None:
    install_for_card(home, program)
    with launched(home) as app:
        first = app.until_ready()
        note = app.state()["note"]
        assert "installed for the graphics card could not be used" in note and words in note
        assert app.state()["crash"] == "" and app.state()["starter"] == ""
        # A crash of another kind does not bring it back.
        app.get("/die?signal=11")
        app.until_ready(but=first)
        assert words in app.state()["note"]


def test_a_python_that_is_no_program_is_left_alone_as_well(home: Path) -> None:
    install_for_card(home, "").python.chmod(0o600)
    with launched(home) as app:
        app.until_ready()
        assert "its Python cannot be started" in app.state()["note"]


def test_what_crashes_while_it_loads_the_model_for_the_card_is_not_tried_again(home: Path) -> None:
    count = shlex.quote(str(home / "starts"))
    install_for_card(
        home, f"echo >> {count}; touch {shlex.quote(str(home / 'dies'))}; {ON_THE_CARD}"
    )
    with launched(home) as app:
        app.wait_for(lambda: (home / "dies").exists(), "a start")
        # Our own would die of the same.
        app.wait_for(lambda: _problem(app) or app.state().get("instance"), "an end")
    assert (home / "starts").read_text() == "\n"


def test_an_installation_of_another_version_is_said_and_not_started(home: Path) -> None:
    install_for_card(home, ON_THE_CARD, version="9.9.9")
    with launched(home) as app:
        app.until_ready()
        assert "belongs to Inglenook 9.9.9 and this is" in app.state()["note"]
        assert app.state()["starter"] == ""


def test_safe_mode_does_not_use_the_card(home: Path) -> None:
    install_for_card(home, ON_THE_CARD)
    with launched(home, "--safe") as app:
        app.until_ready()
        assert app.state()["starter"] == "" and app.state()["note"] == ""


def test_what_an_interrupted_installation_left_goes_at_the_next_start(home: Path) -> None:
    (home / "data").mkdir()
    left = Environment(home / "data" / "cuda").new_folder()
    with launched(home) as app:
        app.until_ready()
        app.wait_for(lambda: not left.exists(), "an end of it")


def test_a_port_that_is_taken_is_one_sentence(home: Path, app: Launched) -> None:
    other = Launched(home / "other", "--port", str(app.port), command=FAKE_APP)
    code, said = other.end()
    assert code == 1
    assert said.startswith(f"Port {app.port} cannot be used") and said.count("\n") == 1


def test_an_unwritable_home_is_shown_and_can_be_mended(home: Path) -> None:
    (home / "place").write_text("a file")
    environment = {"INGLENOOK_HOME": str(home / "place")}
    with held_port() as port:
        app = Launched(home, "--port", str(port), command=FAKE_APP, environment=environment)
        app.port = port
        try:
            problem = app.wait_for(lambda: _problem(app), "a problem")
            assert "cannot be made" in problem["sentence"]
            assert problem["offers"] == ["restart", "report", "quit"]
            (home / "place").unlink()
            app.press("/_app/restart")
            app.until_ready()
            paths = Paths.from_environment(environment)
            assert launcher_address(paths) is not None
            assert not HomeLock.of_launcher(paths).try_acquire()
            app.get("/ask?wish=quit")
            code, said = app.end()
            assert code == 0 and f"Try again or quit at {app.url}" in said
        finally:
            app.__exit__()


def _problem(app: Launched) -> dict[str, Any]:
    try:
        problem: dict[str, Any] = app.state().get("problem", {})
    except OSError:
        return {}
    return problem


NO_STREAMS = """
import sys
sys.stdout = sys.stderr = None
from app.launcher import main
main(["launch", "--help"])
"""


def test_a_program_without_a_console_does_not_fall_over_its_words() -> None:
    done = subprocess.run([sys.executable, "-c", NO_STREAMS], capture_output=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, b"")


LOADED = """
import sys
import app.launcher
heavy = {"gradio", "fastapi", "uvicorn", "llama_cpp", "numpy", "sqlite3", "pydantic", "httpx"}
print(sorted(heavy & set(sys.modules)))
"""


def test_the_launcher_itself_imports_nothing_large() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr


def test_the_frozen_program_starts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.launch.child import own_command

    assert own_command() == (sys.executable, "-m", "app.launcher")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert own_command() == (sys.executable,)


def test_orders_travel_as_json() -> None:
    from dataclasses import asdict

    from app.launch.link import Orders

    orders = Orders(socket=7, crash="It crashed: “ä”.")
    assert Orders(**json.loads(json.dumps(asdict(orders)))) == orders
