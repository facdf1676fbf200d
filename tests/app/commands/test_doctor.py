"""`doctor`: looks at everything, says it, and stops at no fault."""

from typing import Any

import pytest

from app.commands import doctor as doctors
from app.commands.carry_out import carry_out
from app.commands.options import Options
from app.services import Services
from tests.app.commands.console import Recorder
from tests.fakes_model import FakeModelServices

NAMES = ["machine", "home", "history", "model", "memory", "answer"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctors, "BANDWIDTH_BYTES", 2**20)


async def examine(services: Services, **options: Any) -> Recorder:
    console = Recorder()
    await carry_out(services, Options(command="doctor", **options), console)
    return console


def check(result: Any, name: str) -> Any:
    (found,) = [each for each in result["checks"] if each["name"] == name]
    return found


async def test_every_check_is_there_and_a_fault_stops_none(
    services: FakeModelServices,
) -> None:
    result = (await examine(services, json=True)).json()
    assert [each["name"] for each in result["checks"]] == NAMES
    assert result["memory_bandwidth"] > 0
    assert len(result["predictions"]) > 3
    assert check(result, "answer")["ok"]
    assert check(result, "history")["message"] == "0 conversations, the file is sound"


async def test_a_missing_model_has_a_remedy(services: FakeModelServices) -> None:
    missing = Services(services.paths, "/nowhere/model.gguf")
    result = (await examine(missing, json=True)).json()
    await missing.close()
    assert not result["ok"]
    model = check(result, "model")
    assert model["message"] == "There is no model file at /nowhere/model.gguf"
    assert model["remedy"] == "choose another model file or bring it again."
    assert not check(result, "memory")["ok"] and not check(result, "answer")["ok"]
    assert check(result, "history")["ok"]


async def test_a_damaged_history_has_a_remedy(services: FakeModelServices) -> None:
    services.paths.database.write_bytes(b"no database" * 100)
    result = (await examine(services, json=True)).json()
    assert not check(result, "history")["ok"]
    assert check(result, "answer")["ok"]


async def test_a_person_reads_the_same(services: FakeModelServices) -> None:
    missing = Services(services.paths, "/nowhere/model.gguf")
    out = (await examine(missing)).out
    await missing.close()
    for name in NAMES:
        assert name in out
    assert "NOT  model" in out and "->" in out and "GB/s" in out
