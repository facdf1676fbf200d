"""The embedding process from the app's side: started when it is needed, asked one text at a time.

It may die: the next text starts another one, and a text that ends two of them is given up. It ends
when nothing was asked for a while.
"""

import asyncio
import unicodedata
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.documents.embedding.command import COMMAND
from app.documents.embedding.embedder import Embedder, Prefixes, embedder_from
from app.documents.process import ParserProcess
from app.documents.rest import Rest
from app.launch.child import own_command
from engine.errors import EngineError, ModelUnsupported

START_S = 120.0
TEXT_S = 120.0
"""More than a long passage takes with a large model on a busy machine."""
MOST_TRIES = 2
REST_S = 300.0
"""More than lies between two questions of one talk. A new process takes 0.7 s with the English
model and 2.1 s with the multilingual one, on 2 busy cores; one that waits holds 98 and 299 MB."""

Found = TypeVar("Found")
Vector = NDArray[np.float32]


class EmbeddingProcess:
    """One model. Owned by the event loop; who asks while another text is computed waits for it."""

    def __init__(
        self,
        path: Path,
        prefixes: Prefixes | None = None,
        languages: Sequence[str] | None = None,
        command: Sequence[str] = (),
        rest_s: float = REST_S,
    ) -> None:
        """`command` starts the process; empty: this program."""
        self.path = path
        self._prefixes = prefixes
        self._languages = languages
        self._command = (*(command or (*own_command(), COMMAND)), str(path))
        self._lock = asyncio.Lock()
        self._rest = Rest(self._end_rested, rest_s)
        self._thread = ThreadPoolExecutor(1, "embedding")
        self._process: ParserProcess | None = None
        self._embedder: Embedder | None = None
        self.num_started = 0

    @property
    def known(self) -> Embedder | None:
        """What it is, if it was ever started."""
        return self._embedder

    async def embedder(self) -> Embedder:
        """What it is; starts the process if need be. Raises ModelError."""
        async with self._turn():
            await self._ready()
            assert self._embedder is not None
            return self._embedder

    async def embed(self, text: str, *, is_query: bool) -> Vector:
        """Its vector, of length 1. Raises ModelError, and EngineError for a text that cannot be
        computed."""
        async with self._turn():
            for _ in range(MOST_TRIES):
                process, embedder = await self._ready()
                prefixes = embedder.prefixes
                said = (prefixes.query if is_query else prefixes.passage) + text
                if embedder.wants_normal:
                    said = unicodedata.normalize("NFKC", said)
                order = {"text": said, "is_query": is_query}
                vector = await self._asked(partial(_answer, process, order, embedder.width), TEXT_S)
                if vector is not None:
                    return vector
                self._drop()
            raise EngineError(
                f"A text ended the process that computes with {embedder.name}, twice: it is left"
                " to the text search."
            )

    async def close(self) -> None:
        """End the process, after the text that it computes; the next one starts another."""
        async with self._lock:
            await self._rest.wake()
            await self._end()

    async def _end_rested(self) -> None:
        async with self._lock:
            await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            await self._blocking(process.end)

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None, None]:
        """The process for one caller, after those who asked before."""
        async with self._lock:
            # An end that waits for the lock is given up.
            await self._rest.wake()
            try:
                yield
            finally:
                self._rest.begin()

    async def _ready(self) -> tuple[ParserProcess, Embedder]:
        if self._process is None or self._embedder is None:
            former, self._embedder = self._embedder, await self._start()
            if former is not None and former.key != self._embedder.key:
                self._drop()
                raise ModelUnsupported(
                    f"{self.path.name} was replaced by another model: its vectors are made anew."
                )
        assert self._process is not None
        return self._process, self._embedder

    async def _start(self) -> Embedder:
        name = self.path.name
        try:
            process = await self._blocking(lambda: ParserProcess(self._command))
        except OSError as error:
            raise _not_started(name, error.strerror or str(error)) from error
        self._process = process
        self.num_started += 1
        said = await self._asked(process.receive, START_S)
        try:
            if said is not None and "refused" in said:
                raise ModelUnsupported(str(said["refused"]))
            if said is None:
                raise _not_started(name, "it ended at its start")
            return embedder_from(said["ready"], str(self.path), self._prefixes, self._languages)
        except (KeyError, TypeError, ValueError) as error:
            raise _not_started(name, f"it says what makes no sense, {error}") from error
        finally:
            if said is None or "ready" not in said:
                self._drop()

    async def _asked(self, work: Callable[[], Found | None], seconds: float) -> Found | None:
        """What the process answers. None: it is gone, or was ended because it took too long."""
        waiting = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            done, _ = await asyncio.wait({waiting}, timeout=seconds)
        except asyncio.CancelledError:
            # What it says to a text that nobody waits for would be taken for the next one's.
            self._drop()
            raise
        if not done:
            self._drop()
            await asyncio.wait({waiting})
            return None
        return waiting.result()

    async def _blocking(self, work: Callable[[], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _drop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self._thread.submit(process.end)


def _answer(process: ParserProcess, order: dict[str, Any], width: int) -> Vector | None:
    """Blocks. Raises EngineError for a text that the model refuses."""
    said = process.receive() if process.send(order, lambda: iter(())) else None
    if said is None:
        return None
    if "failed" in said:
        raise EngineError(str(said["failed"]))
    if said.get("size") != 4 * width:
        return None
    data = process.receive_bytes(4 * width)
    if data is None:
        return None
    vector = np.frombuffer(data, "<f4").astype(np.float32)
    # A model from anybody may say anything.
    return vector if bool(np.isfinite(vector).all()) else None


def _not_started(name: str, why: str) -> ModelUnsupported:
    return ModelUnsupported(
        f"{name} cannot be used for vectors, because the process for it cannot be started ({why})."
    )
