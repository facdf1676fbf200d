"""`inglenook cuda`: sizes without --yes, and nothing else; everything as JSON too."""

from dataclasses import replace

import pytest

from app.commands.arguments import make_parser
from app.commands.cuda import cuda
from app.commands.given import options_of
from engine.errors import UsageError
from tests.app.commands.console import Recorder
from tests.fakes_cuda import MADE, NOTHING, FakeCuda
from tests.fakes_model import FakeModelServices


@pytest.fixture
def installation(services: FakeModelServices) -> FakeCuda:
    made = FakeCuda(services.paths)
    made.gate.set()
    services.__dict__["cuda"] = made
    return made


async def asked(services: FakeModelServices, *arguments: str) -> Recorder:
    console = Recorder()
    options = options_of(make_parser().parse_args(["cuda", *arguments]))
    await cuda(services, options, console)
    return console


async def test_without_yes_the_sizes_are_said_and_nothing_is_installed(
    services: FakeModelServices, installation: FakeCuda
) -> None:
    console = Recorder()
    options = options_of(make_parser().parse_args(["cuda", "install"]))
    with pytest.raises(UsageError, match="Nothing was installed: say so with --yes"):
        await cuda(services, options, console)
    assert console.out.startswith("It fetches 1 file with 2 GB")
    assert "no card has run that yet" in console.out
    assert installation.done == ["look  False"]
    told = (await asked(services, "install", "--json")).json()
    assert told["installed"] is False and told["fetched_bytes"] == 2_000_000_000


async def test_with_yes_it_is_installed_from_where_was_said(
    services: FakeModelServices, installation: FakeCuda
) -> None:
    console = await asked(services, "install", "--yes", "--anyway", "--torch-index", "none")
    assert installation.done == ["install none True"]
    assert "torch 2.99.0 is installed" in console.out and console.notes
    told = (await asked(services, "install", "--yes", "--json")).json()
    assert told["installed"] and told["used"] and told["torch"] == "2.99.0"


async def test_status_says_what_is_there_and_why_it_is_not_used(
    services: FakeModelServices, installation: FakeCuda
) -> None:
    assert "Nothing is installed" in (await asked(services, "status")).out
    installation.stands = replace(NOTHING, made=MADE, obstacle="It is stale.")
    console = await asked(services, "status")
    assert console.out.splitlines()[1] == "It is stale."
    told = (await asked(services, "status", "--json")).json()
    assert told["installed"] and not told["used"] and told["obstacle"] == "It is stale."
    installation.stands = replace(NOTHING, useless="No card.", not_yet="Not faster.")
    assert (await asked(services, "status")).out.splitlines()[1:] == ["No card.", "Not faster."]
    installation.stands = replace(NOTHING, made=MADE, is_ours=True)
    assert "runs from it" in (await asked(services, "status")).out


async def test_removing_asks_first(services: FakeModelServices, installation: FakeCuda) -> None:
    with installation.environment.alone():
        installation.environment.take(installation.environment.new_folder(), MADE)
    with pytest.raises(UsageError, match=r"\(5 GB\). Nothing was done: say so with --yes"):
        await asked(services, "remove")
    assert installation.done == []
    assert (await asked(services, "remove", "--yes")).out == "It is removed.\n"
    assert (await asked(services, "remove", "--yes", "--json")).json() == {
        "removed": True,
        "gone": True,
    }
