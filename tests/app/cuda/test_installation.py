"""A real pip, real environments and real processes; only the wheels are tiny."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.cuda.cards import OWN_INDEX
from app.cuda.installation import Installation, our_versions
from app.cuda.python import find_python
from app.machine.gpu import Gpu
from app.models.connections import Connections
from app.paths import Paths
from app.version import VERSION
from engine.errors import InstallationFailed, UsageError
from tests.fakes_wheels import ROOT, TORCH, make_own, make_torch

CARD = Gpu(name="Pixel 9", maker="NVIDIA", memory_bytes=2**33, driver="580.1")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place that pip looks at, with our wheel in it and a torch."""
    folder = tmp_path / "the wheels"
    make_own(folder)
    make_torch(folder)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    # By its address: a folder's name may have spaces, which divide this setting.
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())
    return folder


def installation(paths: Paths, wheels: Path, gpus: tuple[Gpu, ...] = (CARD,)) -> Installation:
    return Installation(
        paths, Connections(paths.connections), lambda: list(gpus), find_python, wheels
    )


def folders(paths: Paths) -> list[str]:
    return sorted(each.name for each in paths.data.glob("cuda*") if each.is_dir())


async def test_what_is_looked_at_is_installed_checked_used_and_removed(
    paths: Paths, wheels: Path
) -> None:
    cuda, heard = installation(paths, wheels), list[str]()
    plan = await cuda.look(OWN_INDEX)
    assert {file.name for file in plan.files} == {"inglenook", "torch"}
    assert plan.torch == TORCH and plan.num_unknown == 0 and plan.fetched_bytes == 0
    assert folders(paths) == []
    made = await cuda.install(OWN_INDEX, hear=heard.append)
    assert (made.version, made.torch) == (VERSION, TORCH)
    assert made.num_bytes > 1_000_000
    assert heard[0].startswith("Making an environment") and heard[-1] == "Checking it"
    assert folders(paths) == ["cuda"]
    assert not (paths.cache / "pip").exists()
    standing = await cuda.standing()
    assert standing.made == made and not standing.useless and not standing.is_ours
    said = subprocess.run(
        [*cuda.environment.command, "--version"], capture_output=True, text=True, cwd="/"
    )
    assert said.stdout == f"Inglenook {VERSION}\n"
    # Nobody was asked.
    assert cuda.environment.is_ready and Connections(paths.connections).all() == []
    with pytest.raises(UsageError, match="installed already"):
        await cuda.install(OWN_INDEX)
    assert await cuda.remove()
    assert folders(paths) == []
    with pytest.raises(UsageError, match="Nothing is installed"):
        await cuda.remove()


async def test_a_torch_that_cannot_be_imported_leaves_what_was_there(
    paths: Paths, wheels: Path
) -> None:
    make_torch(wheels, code="raise ImportError('no driver')")
    with pytest.raises(InstallationFailed, match="no driver"):
        await installation(paths, wheels).install(OWN_INDEX)
    assert folders(paths) == []


async def test_another_inglenook_than_this_one_is_not_taken(
    paths: Paths, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cuda.installation.VERSION", "9.9.9")
    with pytest.raises(InstallationFailed, match=f"Inglenook {VERSION}.*not Inglenook 9.9.9"):
        await installation(paths, wheels).install(OWN_INDEX)
    assert folders(paths) == []


async def test_a_disk_that_is_too_small_stops_it_before_anything_comes(
    paths: Paths, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cuda.plan.UNPACKED", 1e12)
    cuda, heard = installation(paths, wheels), list[str]()
    with pytest.raises(InstallationFailed, match="are free where"):
        await cuda.install(OWN_INDEX, hear=heard.append)
    assert not any(line.startswith("Installing") for line in heard)
    assert cuda.plan is not None and cuda.plan.is_too_large


async def test_what_no_index_has_is_a_sentence(paths: Paths, wheels: Path) -> None:
    for wheel in wheels.glob("torch-*"):
        wheel.unlink()
    with pytest.raises(InstallationFailed, match="No matching distribution found for torch"):
        await installation(paths, wheels).look(OWN_INDEX)
    assert folders(paths) == []


async def test_without_a_card_nothing_is_begun(paths: Paths, wheels: Path) -> None:
    cuda = installation(paths, wheels, ())
    for work in (cuda.look, cuda.install):
        with pytest.raises(UsageError, match="no graphics card was found"):
            await work()
    assert Connections(paths.connections).all() == []


async def test_who_would_be_asked_is_on_the_list_before(
    paths: Paths, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that is not there: the connection fails, and was written down."""
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.2:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(InstallationFailed, match="torch"):
        await installation(paths, wheels).look("http://127.0.0.1:9/whl/cu130")
    listed = Connections(paths.connections).all()
    assert {each.host for each in listed} == {"127.0.0.1", "127.0.0.2"}
    assert {each.why for each in listed} == {"install for the graphics card"}


async def test_stopped_on_the_way_it_leaves_nothing(paths: Paths, wheels: Path) -> None:
    cuda = installation(paths, wheels)
    cuda.begin(lambda hear: cuda.install(OWN_INDEX, hear=hear))
    async for lines in cuda.follow():
        if lines:
            cuda.stop()
    assert not cuda.is_working and cuda.failure is None
    assert folders(paths) == [] and not cuda.environment.is_ready


async def test_a_failure_is_kept_for_the_page(paths: Paths, wheels: Path) -> None:
    cuda = installation(paths, wheels, ())
    cuda.begin(lambda hear: cuda.install(hear=hear))
    async for _ in cuda.follow():
        pass
    assert "no graphics card" in str(cuda.failure)


KILLED = """
import asyncio, sys
from pathlib import Path
from app.cuda.installation import Installation
from app.machine.gpu import Gpu
from app.models.connections import Connections
from app.paths import Paths
paths = Paths.from_environment()
card = Gpu(name="Pixel 9", maker="NVIDIA", driver="580.1")
cuda = Installation(
    paths, Connections(paths.connections), lambda: [card], wheels=Path(sys.argv[1])
)
say = lambda line: print(line, flush=True)
asyncio.run(cuda.install("none", hear=say))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
@pytest.mark.parametrize("at", ["Installing", "Checking"])
async def test_killed_in_the_middle_nothing_of_it_is_started(
    paths: Paths, wheels: Path, at: str
) -> None:
    # Slow to import, so that the last of them is met as well.
    make_torch(wheels, code="import time; time.sleep(3); __version__ = '1'")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(wheels)],
        env={**os.environ, "INGLENOOK_HOME": str(paths.data.parent), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(at):
            break
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stdout.close()
    cuda = installation(paths, wheels)
    assert len(folders(paths)) == 1 and folders(paths)[0].startswith("cuda.new-")
    assert cuda.environment.made() is None and not cuda.environment.is_ready
    # What pip was at may end a little later than who started it.
    deadline = time.monotonic() + 60
    while folders(paths) and time.monotonic() < deadline:
        with cuda.environment.alone():
            cuda.environment.sweep()
        await asyncio.sleep(0.2)
    assert folders(paths) == []


def test_what_the_card_needs_may_have_any_version_and_the_rest_has_ours() -> None:
    names = {line.partition("==")[0].lower() for line in our_versions()}
    assert "gradio" in names and not names & {"torch", "triton", "transformers", "inglenook"}


@pytest.mark.nightly
def test_a_real_torch_is_installed_from_this_tree_and_answers(paths: Paths) -> None:
    """By pip's own settings, or from the index in INGLENOOK_TEST_TORCH_INDEX."""
    index = os.environ.get("INGLENOOK_TEST_TORCH_INDEX", OWN_INDEX)
    environment = {**os.environ, "INGLENOOK_HOME": str(paths.data.parent)}
    command = [sys.executable, "-m", "app.cli", "cuda"]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments, "--json"],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
        )

    done = run("install", "--yes", "--anyway", "--torch-index", index)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["used"] and told["version"] == VERSION and told["bytes"] > 5e8
    python = paths.cuda / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    checked = subprocess.run(
        [python, "-I", "-m", "app.launcher", "selfcheck", "--only", "engine"],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert run("remove", "--yes").returncode == 0
    assert not paths.cuda.exists()
