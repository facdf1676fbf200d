"""The self-test on a real model: everything works, within ten seconds, and nothing stays."""

import time

import pytest

from app.machine.self_test import MOST_SECONDS, SelfTest
from app.paths import Paths
from app.services import Services
from app.settings import Settings, save_settings
from engine.errors import EngineError
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes_model import FakeEngine, FakeModelServices


@pytest.mark.model
async def test_the_starter_model_passes_and_leaves_nothing(paths: Paths) -> None:
    services = Services(paths)
    model = await services.chat_model()
    began = time.monotonic()
    checks = await SelfTest(services, model).run()
    seconds = time.monotonic() - began
    usage = model.loaded.engine.kv_usage
    await services.close()
    assert [check for check in checks if not check.ok] == []
    assert seconds < MOST_SECONDS
    assert usage.num_segments == 0
    assert not [file for file in paths.data.iterdir() if file.name.startswith("self-test")]


@pytest.mark.parametrize("kind", ["llama", "gemma3", "mamba", "jamba", "lfm2"])
async def test_every_kind_of_model_passes(paths: Paths, kind: str) -> None:
    """Also one whose window slides, and one that keeps states: they are restored as well."""
    services = Services(paths, str(write_tiny_model(paths.models / "tiny.gguf", kind)))
    checks = await SelfTest(services, await services.chat_model()).run()
    await services.close()
    assert [check for check in checks if not check.ok] == []


@pytest.mark.model
async def test_without_memory_for_conversations_the_remedy_is_the_setting(paths: Paths) -> None:
    save_settings(paths.settings, Settings(kv_ram_bytes=0))
    services = Services(paths)
    checks = await SelfTest(services, await services.chat_model()).run()
    await services.close()
    (wrong,) = [check for check in checks if not check.ok]
    assert wrong.name == "remember" and "RAM" in wrong.remedy


async def test_a_model_that_never_answers_ends_with_the_time(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.machine.self_test.MOST_SECONDS", 0.3)
    services = FakeModelServices(paths, FakeEngine(script=None))
    checks = {
        check.name: check for check in await SelfTest(services, await services.chat_model()).run()
    }
    await services.close()
    assert not checks["write"].ok and "0.3 s were over" in checks["write"].message
    assert not checks["remember"].ok


async def test_a_fault_of_the_engine_is_a_verdict(paths: Paths) -> None:
    engine = FakeEngine(script="a")
    services = FakeModelServices(paths, engine)
    model = await services.chat_model()
    test = SelfTest(services, model)

    async def fail() -> str:
        raise EngineError("The model could not compute this answer.")

    test.write = fail  # type: ignore[method-assign]
    checks = {check.name: check for check in await test.run()}
    await services.close()
    assert not checks["write"].ok and "could not compute" in checks["write"].message
    assert checks["read"].ok
