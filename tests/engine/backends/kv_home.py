"""A real model whose conversations go through every tier, and the logits that it gives them."""

import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.backends.base import Backend, StepFailure
from engine.backends.choice import open_backend
from engine.batch import Batch
from engine.config import EngineConfig
from engine.kv.disk_folder import DiskFolder
from engine.request import RequestOptions
from tests.engine.backends.llama_cpp.model_run import ModelRun


class Recorder:
    """Every row of logits that was sampled from, of the request that is watched."""

    def __init__(self, backend: Backend) -> None:
        self._runner = backend.model_runner
        self.request_id = -1
        self.rows: list[NDArray[np.float32]] = []

    def execute(self, batch: Batch) -> NDArray[np.float32] | StepFailure:
        logits = self._runner.execute(batch)
        if not isinstance(logits, StepFailure):
            place = 0
            for item in batch.sampled:
                if item.request.request_id == self.request_id:
                    self.rows.append(logits[place].copy())
                # A row more for each token that was guessed.
                place += item.num_rows
        return logits

    @property
    def step_cost(self) -> float:
        return self._runner.step_cost

    def abort_step(self) -> None:
        self._runner.abort_step()

    def accept_steps(self) -> None:
        self._runner.accept_steps()


class Home:
    """A model with a disk that outlives it, and who computes it."""

    def __init__(self, model: Path, folder: Path, backend: str = "llama", **changes: int) -> None:
        self._folder = folder
        self.config = EngineConfig(
            model_path=model,
            context_tokens=changes.get("context_tokens", 1024),
            max_sequences=8,
            max_running=4,
            threads=changes.get("threads", 2),
            backend=backend,
            kv_ram_bytes=changes.get("kv_ram_bytes", 2**30),
        )
        self.start()

    def start(self) -> None:
        self.backend = open_backend(self.config)
        self.recorder = Recorder(self.backend)
        self.run = ModelRun(self.backend, self.config)
        self.run.engine._runner = self.recorder
        disk = DiskFolder(self._folder, b"\1" * 32)
        self.run.engine.attach_disk(disk, disk.open())

    def rest(self) -> None:
        while self.run.engine.maintain() is not None:
            pass

    def restart(self) -> None:
        self.run.engine.close()
        self.start()

    def ask(
        self, prompt: list[int], options: RequestOptions, num_answer: int = 12
    ) -> tuple[list[int], NDArray[np.float32], int]:
        """The answer, its logits, and how many tokens of the prompt were read."""
        number = self.run.submit(prompt, options, max_tokens=num_answer)
        self.recorder.request_id = number
        self.recorder.rows = []
        self.run.finish()
        timings = self.run.timings(number)
        return self.run.tokens[number], np.stack(self.recorder.rows), timings.prefilled_tokens


def words(seed: int, count: int) -> list[int]:
    return random.Random(seed).choices(range(100, 40_000), k=count)
