"""A home of its own for each test that wants one, and the starter model."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.models.starter import starter_model
from app.paths import Paths

# Kernels are interpreted, and no card is needed; TRITON_INTERPRET=0 runs their tests on one.
os.environ.setdefault("TRITON_INTERPRET", "1")

# Every commit waits for the disk; a folder in memory makes that short, where there is one.
MEMORY = "/dev/shm"


@pytest.fixture(autouse=True)
def no_models_of_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the person who runs the tests has."""
    monkeypatch.setattr("app.models.local.find_elsewhere", lambda: [])


@pytest.fixture(autouse=True)
def usual_turns() -> Iterator[None]:
    """An app that a test runs in this process changes them for good, and all that follows."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty folder, in memory where that is possible."""
    in_memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=in_memory, prefix="inglenook-") as folder:
        yield Path(folder)


@pytest.fixture
def paths(home: Path) -> Paths:
    made = Paths.from_environment({"INGLENOOK_HOME": str(home)})
    made.create()
    return made


@pytest.fixture(scope="session")
def starter() -> Path:
    """Its file. Without it many tests would prove nothing, so they fail instead."""
    path = starter_model()
    if path is None:
        pytest.fail("The starter model is not installed: run `make install`.")
    return path
