"""`selfcheck`: every part is asked for what only its files can answer, and a fault is named."""

from pathlib import Path

import pytest

from app import selfcheck as selfchecks
from app.cli import main
from app.machine.check import Failed
from app.paths import Paths
from app.selfcheck import NAMES, Parts, check_of, selfcheck
from app.services import Services


@pytest.fixture
def parts(paths: Paths) -> Parts:
    return Parts(Services(paths))


@pytest.mark.model
def test_everything_is_here_and_works(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["selfcheck"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("Inglenook ")
    assert [line.split()[:2] for line in lines[1:]] == [["ok", name] for name in NAMES]


@pytest.mark.model
def test_one_part_alone_can_be_looked_at(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["selfcheck", "--only", "starter"]) == 0
    assert [line.split()[1] for line in capfd.readouterr().out.splitlines()[1:]] == ["starter"]


async def test_a_starter_model_that_was_left_out_is_a_fault(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selfchecks, "starter_model", lambda: None)
    check = await check_of("starter", parts.starter)
    assert not check.ok and "starter model" in check.message


async def test_forms_that_were_left_out_are_a_fault(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selfchecks, "ready_forms", dict)
    check = await check_of("forms", parts.forms)
    assert not check.ok and "form" in check.message


async def test_a_library_that_was_left_out_is_a_fault_and_named(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def import_module(name: str) -> None:
        raise ModuleNotFoundError("No module named 'jinja2'", name="jinja2")

    monkeypatch.setattr(selfchecks.importlib, "import_module", import_module)
    monkeypatch.setattr(selfchecks, "module_names", lambda: ["app.cli"] * 200)
    check = await check_of("modules", parts.modules)
    assert not check.ok and "jinja2" in check.message


async def test_modules_that_were_left_out_are_a_fault(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selfchecks, "module_names", lambda: ["app.cli"])
    with pytest.raises(Failed, match="only 1 module"):
        await parts.modules()


async def test_a_document_is_read_and_wrong_text_is_a_fault(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await check_of("documents", parts.documents)).ok
    other = selfchecks.SMALL_PDF.replace(b"Inglenook", b"something")
    monkeypatch.setattr(selfchecks, "SMALL_PDF", other)
    check = await check_of("documents", parts.documents)
    assert not check.ok and "something" in check.message


def test_one_fault_is_a_failure_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def missing(_: Parts) -> str:
        raise Failed("it is not here", "install it")

    monkeypatch.setattr(Parts, "all", lambda parts: [("part", lambda: missing(parts))])
    assert selfcheck() == 1
    assert "NOT  part       it is not here" in capsys.readouterr().out
