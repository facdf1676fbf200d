"""Indexing that is killed in the middle goes on, and ends as if nothing had been."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from app.documents.library import Library
from tests.app.documents.test_library import WORDS, added, contents, write
from tests.fakes_documents import FakeReader

ROOT = Path(__file__).parents[3]
PROGRAM = """
import asyncio, sys
from pathlib import Path
from app.documents.library import Library
from tests.fakes_documents import FakeReader

async def run():
    library = Library(Path(sys.argv[1]), FakeReader(page_s=0.002))
    await library.prepare()
    print("begun", flush=True)
    await library.add(Path(sys.argv[2]))
    await library.settled()
    print("done", flush=True)

asyncio.run(run())
"""


def index_until(path: Path, folder: Path, seconds: float) -> bool:
    """Index in a process that is killed after so long; whether it was done before."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    with program.stdout:
        assert program.stdout.readline() == "begun\n"
        try:
            program.wait(seconds)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
        return program.stdout.read() == "done\n"


async def killed_at_random(room: Path, folder: Path, num_files: int, num_kills: int) -> None:
    drawn = random.Random(7)
    for number in range(num_files):
        text = "\f".join(" ".join(drawn.choices(WORDS, k=200)) for _ in range(5))
        write(folder / f"{number % 7}" / f"{number}.txt", f"Text {number}. {text}")
    path = room / "documents.sqlite3"
    num_cut_short = 0
    for _ in range(num_kills):
        num_cut_short += not index_until(path, folder, drawn.uniform(0.01, 0.25))
        # What was there changes between two starts, as it does.
        write(folder / "0" / f"{drawn.randrange(num_files)}.txt", f"Changed {drawn.random()}")
    assert num_cut_short >= min(num_kills, 3), "too quick to be cut short: give it more files"
    library = Library(path, FakeReader())
    await library.prepare()
    await added(library, folder)
    await library.close()
    fresh = Library(room / "fresh.sqlite3", FakeReader())
    await added(fresh, folder)
    await fresh.close()
    assert contents(path) == contents(room / "fresh.sqlite3")


async def test_after_kills_the_index_is_that_of_a_fresh_one(room: Path, folder: Path) -> None:
    await killed_at_random(room, folder, num_files=120, num_kills=5)


@pytest.mark.nightly
async def test_after_fifty_kills_as_well(room: Path, folder: Path) -> None:
    await killed_at_random(room, folder, num_files=200, num_kills=50)
