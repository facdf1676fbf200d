"""What the running app refuses, because it has loaded something else."""

import pytest

from app.commands.carry_out import carry_out
from app.commands.options import Options
from engine.adapter import Adapter
from engine.errors import UsageError
from tests.app.commands.console import Recorder
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.fakes_model import FakeModelServices


async def test_another_adapter_than_the_apps_is_refused(services: FakeModelServices) -> None:
    pirate = write_tiny_adapter(services.paths.models / "pirate.gguf")

    async def ask(scale: float) -> Recorder:
        console = Recorder()
        options = Options(command="generate", text="Hi", adapters=(("pirate", scale),))
        await carry_out(services, options, console)
        return console

    with pytest.raises(UsageError, match="The running app answers with .*: leave --lora out"):
        await ask(0.5)
    services.save_settings(
        services.settings.with_adapters(services.model_path, [Adapter(pirate, 0.5)])
    )
    assert "Good day" in (await ask(0.5)).out
    with pytest.raises(UsageError, match="leave --lora out"):
        await ask(1.0)
