"""A home of its own for each test that wants one."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.paths import Paths

# Every commit waits for the disk; a folder in memory makes that short, where there is one.
MEMORY = "/dev/shm"


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
