"""llama.cpp's own server as the other side of a benchmark: started, asked and ended by us."""

import contextlib
import json
import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, Self

from app.bench.our_engine import Stream, Taken
from app.bench.server_process import ServerProcess
from app.bench.workload import Generation
from engine.errors import EngineError

START_S = 60.0
READ_S = 300.0
# What our engine sets for its own process must not reach theirs.
OURS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "GGML_NO_BACKTRACE")
FORGETFUL = ("--no-cache-prompt", "--cache-ram", "0")
"""Nothing of an earlier prompt helps a later one."""
REMEMBERING = ("--cache-ram", "4096")
"""Its best: what leaves a slot stays in memory, up to so many MiB."""


class LlamaServer(ServerProcess):
    """A server on the loopback.

    `memory` says what it keeps of prompts; with a `slot_folder` it saves and restores slots there.
    """

    def __init__(
        self,
        program: Path,
        model: Path,
        *,
        streams: int,
        context_tokens: int,
        threads: int,
        memory: Sequence[str] = FORGETFUL,
        slot_folder: Path | None = None,
    ) -> None:
        self.port = free_port()
        log = tempfile.TemporaryFile()  # noqa: SIM115
        process = subprocess.Popen(
            [
                *(str(program), "--model", str(model), "--host", "127.0.0.1"),
                *("--port", str(self.port), "--ctx-size", str(context_tokens)),
                *("--parallel", str(streams), "--kv-unified", "--flash-attn", "on"),
                *("--threads", str(threads), "--threads-batch", str(threads)),
                *(*memory, "--no-webui", "--offline"),
                *(["--slot-save-path", str(slot_folder)] if slot_folder else []),
                # A batch as large as ours, so that prompts are read in equal pieces.
                *("--batch-size", "512", "--ubatch-size", "512"),
            ],
            env={name: value for name, value in os.environ.items() if name not in OURS},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        super().__init__(process, log)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        try:
            self._wait()
        except BaseException:
            self.close()
            raise
        return self

    def generate(self, generations: Sequence[Generation]) -> Taken:
        """All of them at once, a connection and a thread each."""
        streams: list[Stream | BaseException | None] = [None] * len(generations)
        began = perf_counter()

        def follow(index: int) -> None:
            try:
                streams[index] = self._follow(generations[index], began)
            except (OSError, EngineError, ValueError) as error:
                streams[index] = error

        threads = [
            threading.Thread(target=follow, args=(index,)) for index in range(len(generations))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done = [stream for stream in streams if isinstance(stream, Stream)]
        if len(done) != len(streams):
            raise EngineError(f"llama-server did not answer: {streams}")
        return Taken(tuple(done))

    def _follow(self, generation: Generation, began: float) -> Stream:
        """Read the events as they come and look into the last one only: a reader that costs the
        server as little as possible."""
        body = json.dumps(
            {
                "prompt": list(generation.prompt),
                "n_predict": generation.num_tokens,
                "ignore_eos": True,
                "temperature": 0.0,
                "samplers": ["temperature"],
                "cache_prompt": False,
                "stream": True,
            }
        ).encode()
        head = (
            f"POST /completion HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        arrivals: list[float] = []
        received = bytearray()
        with socket.create_connection(("127.0.0.1", self.port), READ_S) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(head + body)
            while piece := connection.recv(65536):
                # A chunk may hold several events; each is one token.
                arrivals.extend([perf_counter() - began] * piece.count(b"data: {"))
                received += piece
        timings = last_timings(bytes(received))
        if timings["predicted_n"] != generation.num_tokens or timings.get("cache_n", 0):
            raise EngineError(f"llama-server did other work than it was asked for: {timings}")
        # The last event carries the timings and repeats no token.
        return Stream(
            tuple(arrivals[: generation.num_tokens - 1] + arrivals[-1:]),
            float(timings["predicted_per_second"]),
        )

    def _wait(self) -> None:
        ends = perf_counter() + START_S
        while perf_counter() < ends and self.is_running:
            if self._is_healthy():
                return
            sleep(0.05)
        self._output.seek(0)
        lines = self._output.read().decode("utf-8", "replace").strip().splitlines()
        raise EngineError(f"llama-server did not start ({lines[-1] if lines else 'no output'}).")

    def _is_healthy(self) -> bool:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), 1) as connection,
        ):
            connection.sendall(b"GET /health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            return connection.recv(64).split(b"\r\n")[0].endswith(b"200 OK")
        return False


def last_timings(received: bytes) -> dict[str, Any]:
    """The timings in the last event of a stream that held one."""
    for line in reversed(received.splitlines()):
        if line.startswith(b"data: {"):
            event = json.loads(line.removeprefix(b"data: "))
            if "timings" in event:
                timings: dict[str, Any] = event["timings"]
                return timings
    raise EngineError(f"llama-server refused: {received[-300:].decode('utf-8', 'replace')}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
