"""A reading process from outside, when it is gone or says anything at all."""

import errno
import sys
from collections.abc import Iterator

import psutil
import pytest

from app.documents.process import BEHIND, ParserProcess


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[ParserProcess]:
    process = ParserProcess((sys.executable, "-S", "-c", request.param))
    yield process
    process.end()


@pytest.mark.parametrize("process", ["print('[' * 200_000)", "print('[1]')", ""], indirect=True)
def test_what_is_no_object_is_no_answer(process: ParserProcess) -> None:
    assert process.receive() is None


@pytest.mark.parametrize("process", ["import time; time.sleep(600)"], indirect=True)
def test_a_process_that_takes_no_more_is_gone(process: ParserProcess) -> None:
    class Closed:
        """As a pipe of Windows whose other end has gone."""

        def write(self, _: bytes) -> None:
            raise OSError(errno.EINVAL, "Invalid argument")

        def close(self) -> None: ...

    assert process._process.stdin is not None
    process._process.stdin.close()
    process._process.stdin = Closed()  # type: ignore[assignment]
    assert not process.send({"size": 5}, lambda: iter([b"words"]))
    process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has classes instead")
@pytest.mark.parametrize("process", ["import time; time.sleep(600)"], indirect=True)
def test_the_app_goes_before_the_process_that_reads(process: ParserProcess) -> None:
    own = psutil.Process().nice()
    assert process._seen.nice() == min(19, own + BEHIND)
    process.kill()


TORN = "import sys; sys.stdout.buffer.write(b'half'); sys.stdout.flush()"


@pytest.mark.parametrize("process", [TORN], indirect=True)
def test_bytes_that_do_not_all_come_are_none(process: ParserProcess) -> None:
    assert process.receive_bytes(9) is None
