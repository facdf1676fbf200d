"""The app and its commands as processes of their own: what a bad day does to a home.

Every process here runs with a proxy in its environment that does not exist, in a home whose name
needs Unicode, and under a hook that writes down whatever host it speaks to.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.commands.generate import CUT_NOTICE
from app.owner import TOKEN_HEADER, own_or_find
from app.paths import Paths
from app.settings import Settings, save_settings
from tests.app_process import AppProcess
from tests.ports import held_port

pytestmark = pytest.mark.model

PATIENCE_S = 90.0
HELLO = {
    "messages": [{"role": "user", "content": "Tell me a long story."}],
    "max_tokens": 2000,
    "temperature": 0,
}
# The starter model's likeliest story goes on for hundreds of tokens; by chance it may be short.
LONG = ("--temperature", "0")

# Runs at the start of every Python process that finds it.
WATCH = """
import os, sys

def note(event, arguments):
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        host = arguments[1][0] if isinstance(arguments[1], tuple) else "127.0.0.1"
    elif event == "socket.gethostbyname":
        host = arguments[0]
    else:
        return
    with open(os.environ["SPOKEN_TO"], "a") as file:
        file.write(f"{host}\\n")

sys.addaudithook(note)
"""

# The app, in which somebody has just sent a message that takes long to answer.
TALKING = """
import asyncio, sys
import app.run
from app.cli import main
from app.services import Services

class TalkingServices(Services):
    def start(self):
        super().start()
        self.talk = asyncio.ensure_future(self.say("Tell me a long story about the sea."))

    async def say(self, text):
        sampling = {"temperature": 0, "max_tokens": 4000, "ignore_eos": True, "loop_guard": False}
        conversation = await self.conversations.create(sampling=sampling)
        await self.jobs.send(conversation.conversation_id, text)

app.run.Services = TalkingServices
sys.exit(main(sys.argv[1:]))
"""

# The app, which is asked to end while its model loads.
ENDED_EARLY = """
import os, signal, sys
import app.run
from app.cli import main
from app.services import Services

class EndedServices(Services):
    def start(self):
        super().start()
        os.kill(os.getpid(), signal.SIGTERM)

app.run.Services = EndedServices
sys.exit(main(sys.argv[1:]))
"""

# A command that says at its end whether it had loaded what runs a model.
TELLTALE = """
import sys
from app.cli import main
code = main(sys.argv[1:])
print("llama_cpp" in sys.modules, file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module", autouse=True)
def spoken_to(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file of the hosts that the processes of this module spoke to."""
    folder = tmp_path_factory.mktemp("watch")
    (folder / "sitecustomize.py").write_text(WATCH)
    hosts = folder / "hosts"
    hosts.touch()
    root = str(Path(__file__).parents[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), root]))
        patch.setenv("SPOKEN_TO", str(hosts))
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            patch.setenv(name, "http://192.0.2.1:9")
            patch.setenv(name.lower(), "http://192.0.2.1:9")
        yield hosts


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    with AppProcess(tmp_path_factory.mktemp("home") / "näh 🙂") as app:
        yield app


def start(home: Path, *arguments: str, script: str = "", **more: Any) -> subprocess.Popen[bytes]:
    program = ["-c", script] if script else ["-m", "app.cli"]
    if os.name == "posix":
        # Whoever runs the tests in the background has the interrupt switched off, and hands it on.
        more.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    return subprocess.Popen(
        [sys.executable, *program, *arguments],
        env={**os.environ, "INGLENOOK_HOME": str(home), **more.pop("env", {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **more,
    )


def end(process: subprocess.Popen[bytes], given: bytes | None = None) -> tuple[int, str, str]:
    """Code, standard output and standard error, in which there is never a traceback."""
    out, error = process.communicate(given, timeout=PATIENCE_S)
    assert b"Traceback" not in error, error.decode()
    return process.returncode, (out or b"").decode(), error.decode()


def start_talking(home: Path) -> subprocess.Popen[bytes]:
    """An app that is ready, and answers."""
    # Whoever has the usual port would be named on standard error.
    with held_port() as port:
        process = start(home, "run", "--no-open", "--port", str(port), script=TALKING)
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"Inglenook is ready: http://127.0.0.1:")
    return process


def run(home: Path, *arguments: str, **more: Any) -> tuple[int, str, str]:
    return end(start(home, *arguments, **more))


def refused(home: Path, *arguments: str) -> str:
    """The one sentence with which the command failed."""
    code, out, error = run(home, *arguments)
    assert (code, out) == (1, "")
    assert error.count("\n") == 1 and error.endswith(".\n")
    return error


def wait_for(is_so: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := is_so():
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen")


def stored(home: Path) -> list[tuple[str, str, str]]:
    """Role, state and content of every message, read beside the app as SQLite allows."""
    file = home / "data" / "history.sqlite3"
    if not file.exists():
        return []
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        return connection.execute(
            "select role, state, content from message order by seq"
        ).fetchall()
    except sqlite3.OperationalError:
        return []  # not made yet
    finally:
        connection.close()


def num_running(app: AppProcess) -> int:
    response = httpx.get(
        f"{app.address.url}/_app/engine",
        headers={TOKEN_HEADER: app.address.token},
        trust_env=False,
    )
    running: int = response.json()["running"]
    return running


def partial(home: Path) -> str:
    return next((each[2] for each in stored(home) if each[0] == "assistant"), "")


# Beside a running app


def test_a_second_app_finds_the_first(app: AppProcess) -> None:
    code, out, error = run(app.home, "run", "--no-open", "--port", "1")
    assert (code, error) == (0, "")
    assert out == f"Inglenook is running already: {app.address.url}\n"
    assert "keeps its model and engine" in run(app.home, "run", "--no-open", "--model", "x.gguf")[2]


def test_a_command_beside_the_app_is_carried_out_by_it(app: AppProcess) -> None:
    # Reproducible, so short a prompt would always be read whole.
    arguments = ("generate", "Name a colour.", "--max-tokens", "8", "--json", "--no-reproducible")
    code, out, error = run(app.home, *arguments, script=TELLTALE)
    assert code == 0
    assert error == "False\n", "the command loaded a model of its own"
    answer = json.loads(out)
    assert answer["usage"]["completion_tokens"] > 0
    assert answer["backend"] == "llama"
    again = json.loads(run(app.home, *arguments)[1])
    assert again["timings"]["cached_tokens"] > 0, "the app keeps what it has read"


def test_greedy_text_is_the_same_twice(app: AppProcess, home: Path) -> None:
    arguments = ("generate", "What is a hearth?", "--temperature", "0", "--max-tokens", "40")
    texts = [run(each, *arguments)[1] for each in (app.home, app.home, home)]
    assert len(texts[0]) > 40
    assert texts[0] == texts[1] == texts[2]


def test_two_commands_at_once_both_answer(app: AppProcess) -> None:
    processes = [
        start(app.home, "generate", f"Say {word}.", "--max-tokens", "20", "--json")
        for word in ("one", "two")
    ]
    for process in processes:
        code, out, _ = end(process)
        assert code == 0 and json.loads(out)["text"]


def test_standard_input_and_a_narrow_terminal(app: AppProcess) -> None:
    process = start(
        app.home,
        *("generate", "-", "--max-tokens", "5", "--min-tokens", "5"),
        stdin=subprocess.PIPE,
        env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    )
    code, out, error = end(process, "Say 🙂 Grüße".encode())
    assert (code, error.strip()) == (0, CUT_NOTICE)
    assert out.isascii()


def test_a_reader_who_has_enough_is_no_fault(app: AppProcess) -> None:
    for home in (app.home, app.home / "another"):
        process = start(home, "generate", "Tell me a story.", "--max-tokens", "200", *LONG)
        assert process.stdout is not None
        assert process.stdout.read(1)
        process.stdout.close()
        process.stdout = None
        code, _, error = end(process)
        assert (code, error) == (1, "")
    wait_for(lambda: num_running(app) == 0, "the end of the request")


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_control_c_ends_an_answer_at_once(app: AppProcess) -> None:
    for home in (app.home, app.home / "another"):
        process = start(home, "generate", "Tell me a story.", "--max-tokens", "4000", *LONG)
        assert process.stdout is not None
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        assert end(process)[0] == 130
    wait_for(lambda: num_running(app) == 0, "the end of the request")


def test_conversations_are_imported_while_the_app_runs(app: AppProcess, tmp_path: Path) -> None:
    file = tmp_path / "chats.json"
    file.write_text(
        json.dumps(
            {
                "inglenook": 1,
                "conversations": [
                    {
                        "id": "abc",
                        "title": "From elsewhere",
                        "active_leaf_id": "m1",
                        "messages": [{"id": "m1", "role": "user", "content": "Grüße 🙂"}],
                    }
                ],
            }
        )
    )
    code, out, error = run(app.home, "chats", "import", str(file))
    assert (code, out) == (0, "") and error.startswith("Taken in: 1 conversation,")
    (chat,) = app.command("chats", "search", "Grüße")["chats"]
    assert chat["id"] == "abc"
    shown = app.command("chats", "show", "abc")
    assert [each["content"] for each in shown["messages"]] == ["Grüße 🙂"]
    assert run(app.home, "chats", "delete", "abc", "--yes")[0] == 0
    assert app.command("chats", "list") == {"chats": []}


def test_wrong_use_is_told_through_the_app_as_without_it(app: AppProcess) -> None:
    code, out, error = run(app.home, "generate", "Hi", "--temperature", "99")
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert "There is no conversation nobody" in refused(app.home, "chats", "show", "nobody")
    assert "leave --model out" in run(app.home, "generate", "Hi", "--model", "/x.gguf")[2]


def test_other_programs_are_answered_at_once(app: AppProcess) -> None:
    key = (app.home / "data" / "api-key").read_text().strip()

    async def ask(http: httpx.AsyncClient, text: str) -> Any:
        body = {"messages": [{"role": "user", "content": text}], "max_tokens": 12}
        response = await http.post("/v1/chat/completions", json=body)
        assert response.status_code == 200, response.text
        return response.json()

    async def ask_three() -> list[Any]:
        async with httpx.AsyncClient(
            base_url=app.address.url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=PATIENCE_S,
            trust_env=False,
        ) as http:
            answers = await asyncio.gather(*(ask(http, f"Say {word}.") for word in "abc"))
            long = {"messages": [{"role": "user", "content": "word " * 10_000}]}
            refusal = await http.post("/v1/chat/completions", json=long)
            assert refusal.status_code == 400
            assert "the context holds 8,192" in refusal.json()["error"]["message"]
            return answers

    for answer in asyncio.run(ask_three()):
        assert answer["choices"][0]["message"]["content"]
        assert answer["usage"]["completion_tokens"] <= 12


# Ends of all kinds


def test_a_killed_app_loses_nothing_and_leaves_nothing_in_the_way(home: Path) -> None:
    process = start_talking(home)
    seen = wait_for(lambda: len(partial(home)) > 60 and partial(home), "a partial answer")
    process.kill()
    process.communicate()
    assert len(stored(home)) == 2

    # The note and the lock of the dead are no hindrance.
    with AppProcess(home) as app:
        (chat,) = app.command("chats", "list")["chats"]
        user, answer = app.command("chats", "show", chat["id"])["messages"]
        assert user["content"] == "Tell me a long story about the sea."
        assert answer["state"] == "interrupted"
        assert answer["content"].startswith(seen)
        app.kill()
    assert (home / "data" / "owner.json").exists()
    code, out, _ = run(home, "chats", "list")
    assert code == 0 and out.startswith(chat["id"][:8])


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_a_polite_end_stores_everything_within_seconds(home: Path) -> None:
    process = start_talking(home)
    seen = wait_for(lambda: len(partial(home)) > 20 and partial(home), "a partial answer")
    note = json.loads((home / "data" / "owner.json").read_text())
    key = (home / "data" / "api-key").read_text().strip()
    with httpx.stream(
        "POST",
        f"http://127.0.0.1:{note['port']}/v1/chat/completions",
        json={**HELLO, "stream": True},
        headers={"Authorization": f"Bearer {key}"},
        timeout=PATIENCE_S,
        trust_env=False,
    ) as response:
        next(response.iter_bytes())
        process.send_signal(signal.SIGTERM)
        process.wait(5)
    code, _, error = end(process)
    assert (code, error) == (0, "")
    (_, state, content) = stored(home)[-1]
    assert state == "interrupted" and content.startswith(seen)
    assert not (home / "data" / "owner.json").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_a_polite_end_before_the_app_is_ready_is_no_failure(home: Path) -> None:
    assert end(start(home, "run", "--no-open", script=ENDED_EARLY)) == (0, "", "")
    assert not (home / "data" / "owner.json").exists()


# Homes that cannot be used


def test_a_port_that_is_taken_is_one_sentence(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        sentence = refused(home, "run", "--no-open", "--port", str(port))
    assert f"Port {port} cannot be used" in sentence and "--port" in sentence


def test_a_home_that_is_a_file_is_one_sentence(home: Path) -> None:
    (home / "file").write_text("mine")
    for command in (["run", "--no-open"], ["chats", "list"], ["generate", "Hi"]):
        assert "INGLENOOK_HOME" in refused(home / "file", *command)
    assert (home / "file").read_text() == "mine"


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """A file system of its own, where this user may make one."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode != 0:
        pytest.skip("this user may not mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    if os.access(folder, os.W_OK):  # the superuser is not bound by modes
        with mounted(folder, "ro"):
            yield
    else:
        yield
        folder.chmod(0o700)


def test_a_read_only_data_folder_is_one_sentence(home: Path) -> None:
    with read_only(home / "data"):
        for command in (["run", "--no-open"], ["chats", "list"], ["generate", "Hi"]):
            assert "cannot be written" in refused(home, *command)


def test_a_history_of_a_newer_version_is_one_sentence_and_stays(home: Path) -> None:
    run(home, "chats", "list")
    file = home / "data" / "history.sqlite3"
    with sqlite3.connect(file) as connection:
        connection.execute("pragma user_version = 999")
    connection.close()
    before = file.read_bytes()
    for command in (["run", "--no-open"], ["chats", "list"]):
        assert "written by a newer version" in refused(home, *command)
    assert file.read_bytes() == before


def test_damaged_settings_are_one_sentence_and_stay(home: Path) -> None:
    run(home, "chats", "list")
    (home / "data" / "settings.json").write_text('{"model": ')
    for command in (["run", "--no-open"], ["generate", "Hi"]):
        assert "are damaged" in refused(home, *command)
    assert (home / "data" / "settings.json").read_text() == '{"model": '


def test_a_disk_that_fills_up_loses_nothing(home: Path) -> None:
    with mounted(home, "size=1200k"):
        process = start_talking(home)
        wait_for(lambda: partial(home), "a partial answer")
        fill(home / "ballast")
        before = partial(home)
        time.sleep(1.5)  # the answer is saved every half second, and now in vain
        assert process.poll() is None
        assert len(run(home, "chats", "list")[1].splitlines()) == 1
        assert partial(home) == before
        (home / "ballast").unlink()
        wait_for(lambda: len(partial(home)) > len(before), "an answer that is stored again")
        process.send_signal(signal.SIGTERM)
        assert end(process)[::2] == (0, "")
        assert stored(home)[-1][1] == "interrupted"


def fill(file: Path) -> None:
    """Until there is no room left."""
    with open(file, "wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(bytes(1024))


# Models that cannot be used


@pytest.fixture
def models(home: Path, starter: Path) -> dict[str, Path]:
    with starter.open("rb") as file:
        beginning = file.read(3_000_000)
    files = {
        "missing": home / "missing.gguf",
        "garbage": home / "garbage.gguf",
        "empty": home / "empty.gguf",
        "header": home / "header.gguf",
        "truncated": home / "truncated.gguf",
    }
    files["garbage"].write_bytes(b"<html>" * 1000)
    files["empty"].touch()
    files["header"].write_bytes(beginning[:40])
    files["truncated"].write_bytes(beginning)
    return files


@pytest.mark.parametrize("kind", ["missing", "garbage", "empty", "header", "truncated"])
def test_a_model_that_cannot_be_used_is_one_sentence(
    home: Path, models: dict[str, Path], kind: str
) -> None:
    sentence = refused(home, "generate", "Hi", "--model", str(models[kind]))
    assert models[kind].name in sentence and "another model" in sentence


def test_a_model_named_for_the_app_must_be_usable(home: Path, models: dict[str, Path]) -> None:
    sentence = refused(home, "run", "--no-open", "--model", str(models["truncated"]))
    assert "truncated.gguf is cut off or damaged at 3,000,000 bytes" in sentence
    assert not (home / "data" / "owner.json").exists()


def test_a_chosen_model_that_vanished_leaves_the_history_readable(home: Path) -> None:
    paths = Paths.from_environment({"INGLENOOK_HOME": str(home)})
    paths.create()
    save_settings(paths.settings, Settings(model=str(home / "gone.gguf")))
    with AppProcess(home) as app:
        assert app.command("chats", "list") == {"chats": []}
        assert "There is no model file at" in refused(home, "generate", "Hi")
        checks = {each["name"]: each for each in app.command("doctor")["checks"]}
        assert not checks["model"]["ok"] and checks["history"]["ok"]
    # And the home is free again.
    with own_or_find(paths, 0):  # type: ignore[union-attr]
        pass


# What never leaves the machine


def test_no_process_here_spoke_to_another_machine(spoken_to: Path, app: AppProcess) -> None:
    assert run(app.home, "models", "list")[0] == 0
    hosts = set(spoken_to.read_text().split())
    assert hosts <= {"127.0.0.1", "localhost", "::1", "None"}
    assert "127.0.0.1" in hosts, "the hook saw nothing"
