"""The app frozen as packages are, from the engine that is installed, and asked as a user would.

What only shows in the frozen app is a part that was left out; here it costs a build of its own, two
minutes, and every change pays them.
"""

import subprocess
import sys
from pathlib import Path

import linux_package
import pytest
import traces
from freeze import Frozen, freeze

from app.selfcheck import NAMES
from app.updates.updates import published_at
from app.version import VERSION
from tests.packaging.packaged import Packaged, page, take_away_writing

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(sys.platform != "linux", reason="where a user's machine is easily imitated"),
]

QUESTION = "What is the capital of France?"
MOST_BYTES = 450e6


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Frozen:
    """In a folder that a person may have, which nobody can write to."""
    made = freeze(tmp_path_factory.mktemp("frozen"))
    folder = tmp_path_factory.mktemp("Jürgens Täst Ordner") / "Mein Inglenook"
    made.folder.rename(folder)
    take_away_writing(folder)
    return Frozen(folder, made.parts)


@pytest.fixture
def program(frozen: Frozen, home: Path) -> Packaged:
    return Packaged(program=frozen.program, home=home)


def test_it_answers_as_the_tree_does(program: Packaged, tmp_path: Path) -> None:
    answer = program.ask(QUESTION, "--max-tokens", "16")
    here = subprocess.run(
        [sys.executable, "-m", "app.cli", "generate", QUESTION, "--temperature", "0"]
        + ["--max-tokens", "16"],
        env={"PATH": "", "INGLENOOK_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert here.returncode == 0, here.stderr
    assert answer["text"].strip() == here.stdout.strip()


def test_every_part_came_along(program: Packaged) -> None:
    looked = program.run("selfcheck")
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert [line[:3] for line in looked.stdout.splitlines()[1:]] == ["ok "] * len(NAMES)


def test_it_says_its_version(program: Packaged) -> None:
    assert program.run("--version").stdout == f"Inglenook {VERSION}\n"


def test_it_knows_what_it_says_of_where_versions_are_published(program: Packaged) -> None:
    asked = program.run("updates", "--from", "http://releases.example")
    assert asked.returncode == 1
    assert asked.stderr.startswith("releases.example is not spoken to without encryption")
    assert published_at() or "does not know where new versions" in program.run("updates").stderr


def test_a_double_click_brings_the_page_and_a_second_one_finds_the_first(program: Packaged) -> None:
    with program.started("launch", "--no-open") as first:
        first.says("ready")
        assert "gradio" in page(program.owner())
        again = program.run("launch", "--no-open")
        assert again.returncode == 0
        assert "running already" in again.stdout


def test_it_keeps_to_its_size(frozen: Frozen) -> None:
    files = [file for file in frozen.folder.rglob("*") if not file.is_dir()]
    assert sum(file.lstat().st_size for file in files) < MOST_BYTES


def test_nothing_in_it_tells_where_it_was_made(frozen: Frozen) -> None:
    assert traces.find_traces(frozen.folder, traces.own_places()) == []


def test_only_what_is_shipped_came_along(frozen: Frozen) -> None:
    modules = {name.partition(".")[0] for name, _ in frozen.parts}
    assert {"app", "gradio", "llama_cpp"} <= modules
    assert not modules & {"torch", "pytest", "mypy", "tkinter", "readline", "pip", "setuptools"}


def test_it_needs_no_newer_c_library_than_the_one_it_was_made_with(frozen: Frozen) -> None:
    have = subprocess.run(["getconf", "GNU_LIBC_VERSION"], capture_output=True, text=True).stdout
    needed = linux_package.needed_glibc(frozen.folder)
    assert tuple(map(int, needed.split("."))) <= tuple(map(int, have.split()[1].split(".")))
