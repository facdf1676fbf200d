"""The app's process is heard to its end, and its log stays short."""

import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from app.launch import child
from app.launch.child import KEPT_LOG_BYTES, Child, End, Said, as_stranger, keep_short
from app.launch.link import Doing, Orders
from app.web.port import bind

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sockets are handed on in another way")

Start = Callable[[str], SimpleQueue[Said | End]]


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    with bind(port=0) as sock:
        yield sock


@pytest.fixture
def start(sock: socket.socket, tmp_path: Path) -> Start:
    """Runs this code as the app; what is heard of it."""

    def starting(code: str) -> SimpleQueue[Said | End]:
        heard: SimpleQueue[Said | End] = SimpleQueue()
        command = (sys.executable, "-S", "-c", code)
        Child(command, sock, Orders(crash="It crashed."), tmp_path / "native.log", heard.put)
        return heard

    return starting


def test_orders_come_first_and_with_the_socket(start: Start, sock: socket.socket) -> None:
    heard = start("import sys; print(sys.stdin.readline())")
    expected = {"socket": sock.fileno(), "crash": "It crashed.", "note": ""}
    # Two names are no word of the app, and are not taken for one.
    assert heard.get(timeout=30) == End(code=0)
    heard = start(
        "import json, sys; print(json.dumps({'ready': json.loads(sys.stdin.readline())}))"
    )
    assert heard.get(timeout=30) == Said("ready", expected)


@pytest.mark.parametrize(
    ("counts", "is_short", "ran_out"),
    [
        ((4, 4), False, False),
        ((4, 5), False, True),
        ((4, 4), True, True),
        ((None, None), False, False),
    ],
)
def test_the_end_says_whether_memory_ran_out_meanwhile(
    start: Start,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    counts: tuple[int | None, int | None],
    is_short: bool,
    ran_out: bool,
) -> None:
    may_end = tmp_path / "may end"
    monkeypatch.setattr(child, "num_memory_kills", lambda: counts[may_end.exists()])
    monkeypatch.setattr(child, "is_memory_short", lambda: is_short)
    heard = start(f"import os, time\nwhile not os.path.exists({str(may_end)!r}): time.sleep(0.01)")
    may_end.touch()
    assert heard.get(timeout=30) == End(code=0, memory_ran_out=ran_out)


@pytest.mark.parametrize(
    "line", ["", "words", "[1]", "1", "{}", "[" * 60_000, '{"a": 1, "b": 2}', "\udcff"]
)
def test_what_was_not_meant_for_the_launcher_is_not_heard(start: Start, line: str) -> None:
    data = line.encode("utf-8", "surrogateescape")
    heard = start(f"import os; os.write(1, {data!r} + b'\\n')")
    assert heard.get(timeout=30) == End(code=0)


def test_the_end_has_all_that_is_known(start: Start) -> None:
    heard = start(
        "import json, os\n"
        "say = lambda **said: print(json.dumps(said), flush=True)\n"
        "say(doing={'model': 'Qwen', 'is_loading': True})\n"
        "say(fault='MemoryError')\n"
        "os.write(2, b'the last words')\n"
        "os._exit(7)"
    )
    assert [heard.get(timeout=30) for _ in range(2)] == [
        Said("doing", {"model": "Qwen", "is_loading": True}),
        Said("fault", "MemoryError"),
    ]
    doing = Doing(model="Qwen", is_loading=True)
    assert heard.get(timeout=30) == End(
        code=7, doing=doing, fault="MemoryError", log="the last words"
    )


def test_only_what_this_process_wrote_is_its_log(start: Start) -> None:
    for words in ("first", "second"):
        heard = start(f"import os; os.write(2, b'{words}')")
        end = heard.get(timeout=30)
        assert isinstance(end, End) and end.log == words


def test_a_long_log_begins_anew_and_the_old_one_stays_beside_it(tmp_path: Path) -> None:
    log = tmp_path / "native.log"
    keep_short(log)
    assert log.read_bytes() == b"" and stat.S_IMODE(log.stat().st_mode) == 0o600
    log.write_bytes(b"x" * (KEPT_LOG_BYTES + 1))
    keep_short(log)
    assert log.read_bytes() == b""
    assert (tmp_path / "native.log.1").stat().st_size == KEPT_LOG_BYTES + 1


def test_who_opens_a_strangers_file_knows_nothing_of_our_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("INGLENOOK_API_KEY", "secret")
    monkeypatch.setenv("INGLENOOK_HOME", "/home/of/ours")
    seen = as_stranger()["env"]
    assert seen["PATH"] == os.environ["PATH"]
    assert not [name for name in seen if name.startswith("INGLENOOK")]
