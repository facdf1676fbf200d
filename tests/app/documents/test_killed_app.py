"""Real processes that are killed while they read real files: the next one goes on, and the index
ends as if nothing had been. `test_killed.py` has the same with a reader that is quick."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.paths import Paths
from tests.app.documents.every_kind import file_of
from tests.app.documents.test_library import WORDS, contents
from tests.app_process import AppProcess

ROOT = Path(__file__).parents[3]
PATIENCE_S = 120.0
LONGEST_START_S = 20.0
LONGEST_READING_S = 1.2
NUM_CHANGED = 8
APP_EVERY = 10
"""Every so many times it is the whole app that is killed, and `docs add` the other times."""


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "INGLENOOK_HOME": str(home), "PYTHONPATH": str(ROOT)}


def docs_add(home: Path, folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "docs", "add", str(folder)],
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE_S:g} s"
        time.sleep(0.01)


def kill_while_reading(process: "subprocess.Popen[Any]", seconds: float) -> bool:
    """So long after it has begun to read, and its reading process ends as well. False: it had come
    to its end."""
    seen = psutil.Process(process.pid)
    latest = time.monotonic() + LONGEST_START_S
    while process.poll() is None and not seen.children() and time.monotonic() < latest:
        time.sleep(0.01)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        readers = seen.children()
        process.kill()
        process.wait()
        wait_for(lambda: not any(map(is_alive, readers)), "the end of the reading process")
        return True
    return False


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def change(folder: Path, chance: random.Random) -> None:
    """As it may change between two starts: some are new or changed, one is renamed, one gone."""
    for number in range(NUM_CHANGED):
        name, data = file_of(chance.randrange(1000, 9999), " ".join(chance.choices(WORDS, k=60)))
        there = sorted(folder.glob(f"*{Path(name).suffix}"))
        place = chance.choice(there) if there and number else folder / name
        place.write_bytes(data)
    renamed, gone = chance.sample(sorted(folder.iterdir()), 2)
    renamed.rename(renamed.with_name(f"again-{renamed.name}"))
    gone.unlink()


@pytest.mark.model
@pytest.mark.parametrize(
    ("num_files", "num_kills"), [(24, 2), pytest.param(200, 50, marks=pytest.mark.nightly)]
)
def test_after_kills_the_index_is_that_of_a_fresh_one(
    room: Path, folder: Path, num_files: int, num_kills: int
) -> None:
    chance = random.Random(11)
    for number in range(num_files):
        name, data = file_of(number, " ".join(chance.choices(WORDS, k=150)))
        (folder / name).write_bytes(data)
    home, fresh = room / "home", room / "fresh"
    num_cut_short = 0
    for number in range(num_kills):
        seconds = chance.uniform(0.0, LONGEST_READING_S)
        if number % APP_EVERY == APP_EVERY - 1:
            with AppProcess(home) as app:
                num_cut_short += kill_while_reading(app.process, seconds)
        else:
            num_cut_short += kill_while_reading(docs_add(home, folder), seconds)
        change(folder, chance)
    assert num_cut_short >= num_kills // 2, "too quick to be cut short: give it more files"
    for place in (home, fresh):
        assert docs_add(place, folder).wait(PATIENCE_S) == 0
    found, wanted = (
        contents(Paths.from_environment({"INGLENOOK_HOME": str(place)}).documents)
        for place in (home, fresh)
    )
    assert found == wanted
    print(f"{num_cut_short} of {num_kills} were cut short")
