"""`inglenook updates`: asked once, said in a sentence or as JSON, and 1 with the reason."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.commands.arguments import make_parser
from app.commands.given import options_of
from app.commands.updates import updates
from app.version import VERSION
from engine.errors import DownloadError
from tests.app.commands.console import Recorder
from tests.fakes_model import FakeModelServices
from tests.fakes_releases import SUM, FakeReleases, newer


@pytest.fixture
def releases() -> Iterator[FakeReleases]:
    with FakeReleases().serving() as releases:
        yield releases


async def asked(services: FakeModelServices, *arguments: str) -> Recorder:
    console = Recorder()
    await updates(services, options_of(make_parser().parse_args(["updates", *arguments])), console)
    return console


async def test_a_newer_version_is_said_in_a_sentence_and_as_json(
    services: FakeModelServices, releases: FakeReleases
) -> None:
    console = await asked(services, "--from", releases.url)
    assert console.out.startswith(f"Inglenook 99.0.0 of 2026-12-24 is newer than this {VERSION}")
    assert SUM in console.out and console.out.count("\n") == 1
    told = (await asked(services, "--from", releases.url, "--json")).json()
    assert told["newer"] and told["newest"] == "99.0.0" and len(told["archives"]) == 1
    assert [each.why for each in services.library.connections.all()] == 2 * ["check for updates"]


async def test_the_newest_version_is_said_to_be_it(
    services: FakeModelServices, releases: FakeReleases
) -> None:
    releases.says(newer(VERSION))
    assert (await asked(services, "--from", releases.url)).out.startswith("This is the newest")
    assert not (await asked(services, "--from", releases.url, "--json")).json()["newer"]


async def test_what_goes_wrong_says_nothing_on_standard_output(
    services: FakeModelServices, releases: FakeReleases
) -> None:
    releases.status = 404
    with pytest.raises(DownloadError, match="nothing to read"):
        await asked(services, "--from", releases.url, "--json")


def test_the_command_itself_ends_with_0_or_with_1_and_one_sentence(
    home: Path, releases: FakeReleases
) -> None:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "app.cli", "updates", *arguments],
            env={"INGLENOOK_HOME": str(home), "PYTHONPATH": str(Path(__file__).parents[3])},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=60,
        )

    done = run("--from", releases.url, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["newest"] == "99.0.0"
    releases.body = b"nonsense"
    failed = run("--from", releases.url)
    assert failed.returncode == 1 and failed.stdout == ""
    assert failed.stderr.startswith("127.0.0.1 answered") and failed.stderr.count("\n") == 1
