"""Every command and a chat with the network forbidden: all of it works, and nothing even tried.

Each process here runs under a hook that refuses to look up any name and to speak to any address but
this machine's own, and that writes down what was refused.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.app_process import AppProcess
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model

pytestmark = pytest.mark.model

PATIENCE_S = 180.0

# Runs at the start of every Python process that finds it.
DENY = """
import os, sys

LOCAL = {"127.0.0.1", "::1", "localhost", "", None}

def deny(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host in LOCAL:
        with open(os.environ["ATTEMPTS"] + ".local", "a") as file:
            file.write(f"{event} {host}\\n")
        return
    with open(os.environ["ATTEMPTS"], "a") as file:
        file.write(f"{event} {host} by {' '.join(sys.orig_argv)}\\n")
    raise OSError(f"the network is forbidden: {event} {host}")

sys.addaudithook(deny)
"""

DESCRIPTION = """\
Metadata-Version: 2.4
Name: inglenook
Version: 0.1.0
Project-URL: Releases, https://releases.example/inglenook
"""


@pytest.fixture(scope="module", autouse=True)
def attempts(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file of what was tried, for all processes of this module."""
    folder = tmp_path_factory.mktemp("deny")
    (folder / "sitecustomize.py").write_text(DENY)
    # An address for new versions, which nobody asks by himself.
    description = folder / "inglenook-0.1.0.dist-info" / "METADATA"
    description.parent.mkdir()
    description.write_text(DESCRIPTION)
    file = folder / "attempts"
    file.touch()
    root = str(Path(__file__).parents[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), root]))
        patch.setenv("ATTEMPTS", str(file))
        yield file


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    with AppProcess(tmp_path_factory.mktemp("app")) as app:
        yield app


def run(home: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        env={**os.environ, "INGLENOOK_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_hook_refuses_and_notes_what_is_tried(attempts: Path) -> None:
    """Else nothing below would prove anything."""
    for what in (
        "import socket; socket.getaddrinfo('example.org', 443)",
        "import socket; socket.create_connection(('192.0.2.1', 9), timeout=1)",
        "import urllib.request; urllib.request.urlopen('http://example.org')",
    ):
        done = subprocess.run([sys.executable, "-c", what], capture_output=True, text=True)
        assert done.returncode == 1 and "the network is forbidden" in done.stderr
    assert len(attempts.read_text().splitlines()) == 3
    attempts.write_text("")


COMMANDS = (
    ("generate", "Name a colour.", "--max-tokens", "8"),
    ("generate", "Is water wet?", "--choice", "yes", "--choice", "no"),
    ("models", "list", "--json"),
    ("models", "info"),
    ("doctor", "--self-test", "--report"),
    ("chats", "list"),
    ("chats", "search", "hearth"),
    ("chats", "export"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_works_alone_and_tries_nothing(
    home: Path, attempts: Path, command: tuple[str, ...]
) -> None:
    assert run(home, *command) or command[0] == "chats"
    assert attempts.read_text() == ""


def test_a_model_is_made_smaller_and_nothing_is_tried(
    home: Path, tiny: Path, attempts: Path
) -> None:
    run(home, "models", "quantize", str(tiny), str(home / "small.gguf"), "--type", "Q8_0")
    assert attempts.read_text() == ""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_works_beside_the_app_and_tries_nothing(
    app: AppProcess, attempts: Path, command: tuple[str, ...]
) -> None:
    assert run(app.home, *command) or command[0] == "chats"
    assert attempts.read_text() == ""


@pytest.mark.parametrize("beside_the_app", [False, True])
def test_only_who_asks_for_a_newer_version_asks_where_it_would_be(
    app: AppProcess, home: Path, attempts: Path, beside_the_app: bool
) -> None:
    """Else the address above would prove nothing."""
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "updates"],
        env={**os.environ, "INGLENOOK_HOME": str(app.home if beside_the_app else home)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("There is no connection to releases.example: check")
    (tried,) = attempts.read_text().splitlines()
    assert tried.startswith("socket.getaddrinfo releases.example")
    attempts.write_text("")


def test_the_app_answers_and_tries_nothing(app: AppProcess, attempts: Path) -> None:
    with httpx.Client(base_url=app.address.url, trust_env=False, timeout=PATIENCE_S) as client:
        page = client.get("/", headers={"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"})
        assert page.status_code == 200
        key = (app.home / "data" / "api-key").read_text().strip()
        answer = client.post(
            "/v1/chat/completions",
            headers={"Authorization": f"Bearer {key}"},
            json={"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8},
        )
        assert answer.json()["choices"][0]["message"]["content"]
    assert attempts.read_text() == ""
    local = Path(f"{attempts}.local").read_text()
    assert "socket.bind 127.0.0.1" in local, "the hook was not in the app"
