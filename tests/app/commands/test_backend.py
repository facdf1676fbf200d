"""Who computes: as named with a command, or as the running app has it."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.commands.arguments import make_parser
from app.commands.carry_out import carry_out
from app.commands.given import options_of
from app.commands.options import Options
from app.launch.start import Options as StartOptions
from app.launch.start import Start
from app.paths import Paths
from app.services import Services
from engine.errors import ModelUnsupported, UsageError
from tests.app.commands.console import Recorder
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes_model import FakeModelServices

ASKED = Options(
    command="generate", text="Hi", sampling={"temperature": 0.0, "max_tokens": 4}, json=True
)
needs_torch = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("transformers") is None, reason="torch is an extra"
)


def test_it_is_named_on_the_command_line() -> None:
    parser = make_parser()
    assert options_of(parser.parse_args(["generate", "Hi"])).backend == "auto"
    assert (
        options_of(parser.parse_args(["generate", "Hi", "--backend", "torch"])).backend == "torch"
    )
    assert parser.parse_args(["run", "--backend", "llama"]).backend == "llama"
    with pytest.raises(SystemExit):
        parser.parse_args(["generate", "Hi", "--backend", "cuda"])


def test_the_launcher_hands_it_on_to_every_start() -> None:
    named = StartOptions(backend="torch").arguments(Start(crash="It ended."))
    assert named == ("run", "--launched", "--no-open", "--backend", "torch")


async def test_another_one_than_the_running_apps_is_refused(services: FakeModelServices) -> None:
    await services.chat_model()
    for backend in ("auto", "fake"):
        options = Options(command="generate", text="Hi", backend=backend)
        await carry_out(services, options, Recorder())
    options = Options(command="generate", text="Hi", backend="torch")
    with pytest.raises(UsageError, match="computes with the backend fake: leave --backend out"):
        await carry_out(services, options, Recorder())


async def test_before_a_model_is_loaded_the_one_that_will_compute_counts(
    services: FakeModelServices,
) -> None:
    assert services.loaded_model is None
    options = Options(command="generate", text="Hi", backend="torch")
    with pytest.raises(UsageError, match="computes with the backend llama"):
        await carry_out(services, options, Recorder())
    await carry_out(services, replace(options, backend="llama"), Recorder())


async def test_a_file_is_answered_by_the_one_that_was_named(paths: Paths) -> None:
    model = write_tiny_model(paths.models / "tiny.gguf")
    result = (await generated(paths, model, "llama")).json()
    assert result["backend"] == "llama" and "slow" not in result.get("notice", "")


@needs_torch
async def test_the_torch_engine_answers_and_says_that_it_is_slow(paths: Paths) -> None:
    model = write_tiny_model(paths.models / "tiny.gguf")
    result = (await generated(paths, model, "torch")).json()
    assert result["backend"] == "torch"
    assert result["usage"]["completion_tokens"] > 0
    assert "which is slow: --backend llama is faster" in result["notice"]


@needs_torch
async def test_a_folder_of_safetensors_is_answered_without_naming_anybody(
    paths: Paths, tmp_path: Path
) -> None:
    from tests.engine.backends.torch.tiny_models import save_tiny

    save_tiny(tmp_path, "llama")
    assert (await generated(paths, tmp_path, "auto")).json()["backend"] == "torch"


async def test_without_torch_the_sentence_says_what_to_do(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.backends.choice.find_spec", lambda name: None)
    model = write_tiny_model(paths.models / "tiny.gguf")
    with pytest.raises(ModelUnsupported, match="torch, which is not installed"):
        await generated(paths, model, "torch")


async def generated(paths: Paths, model: Path, backend: str) -> Recorder:
    services = Services(paths, str(model), backend=backend)
    console = Recorder()
    try:
        await carry_out(services, ASKED, console)
    finally:
        await services.close()
    return console
