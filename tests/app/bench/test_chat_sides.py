"""A side of a chat workload: what its process used, and when it rests."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.bench import chat_sides
from app.bench.chat_servers import RunningServer
from app.bench.chat_sides import Side, settle
from app.bench.machine import Used, used_by
from engine.errors import EngineError
from tests.app.bench.fake_chat_server import KEY, FakeChatServer

WORK = """
import sys, time
while time.process_time() < float(sys.argv[1]): pass
print('ready', flush=True)
sys.stdin.readline()
while time.process_time() < float(sys.argv[1]) + float(sys.argv[2]): pass
"""
HELLO = [{"role": "user", "content": "Hello there"}]


class WorkingServer(RunningServer):
    """A fake server beside a process that computes while it starts, and again while it ends."""

    def __init__(self, fake: FakeChatServer, starting: float = 0.0, ending: float = 0.0) -> None:
        super().__init__(fake.url, KEY)
        self._arguments = [str(starting), str(ending)]
        self.num_started = 0

    @property
    def pid(self) -> int:  # type: ignore[override]
        return self._process.pid

    @property
    def is_running(self) -> bool:  # type: ignore[override]
        return self._process.poll() is None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORK, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        self.num_started += 1

    def end(self, *, kill: bool) -> None:
        if kill:
            self._process.kill()
        else:
            assert self._process.stdin is not None
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def fake() -> Iterator[FakeChatServer]:
    with FakeChatServer() as fake:
        yield fake


def test_a_start_does_not_count_and_an_end_does(fake: FakeChatServer) -> None:
    server = WorkingServer(fake, starting=0.3, ending=0.4)
    with Side(server, 4) as side:
        assert side.used is not None
        assert side.used.processor_s < 0.1
        side.restart(kill=False)
        used = side.used
    assert server.num_started == 2
    # It is looked at until it ends, so that its last moments are missed at most.
    assert used is not None
    assert 0.25 < used.processor_s < 0.6


def test_a_power_cut_leaves_no_time_for_anything(fake: FakeChatServer) -> None:
    with Side(WorkingServer(fake, ending=5.0), 4) as side:
        side.restart(kill=True)
        assert side.used is not None
        assert side.used.processor_s < 0.2


def test_what_is_asked_is_waited_for_and_what_is_said_besides_is_not(fake: FakeChatServer) -> None:
    with Side(RunningServer(fake.url, KEY), 4) as side:
        side.say(HELLO, "other")
        assert side.asked_s == 0.0
        answer = side.ask(HELLO, "mine")
        assert side.asked_s == answer.total_s > 0
        assert side.used is None


def test_an_answer_has_as_many_tokens_as_the_side_was_made_for(fake: FakeChatServer) -> None:
    with Side(RunningServer(fake.url, KEY), 4) as side:
        assert side.ask(HELLO, "mine").text == "said said said said"
        assert side.ask(HELLO, "mine", 2).text == "said said"


def test_a_side_that_works_is_waited_for(
    fake: FakeChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Side(WorkingServer(fake, ending=0.5), 4) as side:
        assert settle([side])
        side._server.end(kill=False)
        before = chat_sides.busy_s([side])
        settle([side])
        assert chat_sides.busy_s([side]) - before > 0.4


def test_a_side_that_never_rests_is_not_waited_for_for_ever(
    fake: FakeChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_sides, "PATIENCE_S", 0.5)
    with Side(WorkingServer(fake, ending=60.0), 4) as side:
        side._server.end(kill=False)
        assert not settle([side])


def test_a_server_that_cannot_be_watched_is_taken_as_it_is(fake: FakeChatServer) -> None:
    with Side(RunningServer(fake.url, KEY), 4) as side:
        assert settle([side])
        with pytest.raises(EngineError, match="cannot be restarted"):
            side.restart(kill=False)


def test_a_side_that_does_not_start_leaves_nothing_behind() -> None:
    closed = []

    class Broken(RunningServer):
        def close(self) -> None:
            closed.append(self.name)

    with pytest.raises(EngineError), Side(Broken("http://127.0.0.1:9", KEY), 4):
        pass
    assert closed == ["peer"]


def test_a_process_is_measured_with_its_children() -> None:
    mine = used_by(os.getpid())
    assert mine is not None and mine.processor_s > 0
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        both = used_by(os.getpid())
        assert both is not None and both.processor_s - mine.processor_s > 0.28
        child.kill()
    assert used_by(child.pid) is None


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="this system does not tell")
def test_what_goes_to_a_disk_is_counted(tmp_path: Path) -> None:
    before = used_by(os.getpid())
    (tmp_path / "file").write_bytes(bytes(3_000_000))
    after = used_by(os.getpid())
    assert before is not None and before.written_bytes is not None
    assert after is not None and after.written_bytes is not None
    assert 3_000_000 <= after.written_bytes - before.written_bytes < 4_000_000


def test_what_one_of_two_does_not_tell_is_unknown_of_both() -> None:
    assert Used(1.0, 5) + Used(2.0, 6) == Used(3.0, 11)
    assert Used(3.0, 11) - Used(1.0, 5) == Used(2.0, 6)
    assert Used(1.0, None) + Used(2.0, 6) == Used(3.0, None)
    assert Used(3.0, 6) - Used(2.0, None) == Used(1.0, None)
