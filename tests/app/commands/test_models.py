"""`models`: what is here, and what a file is."""

from pathlib import Path
from typing import Any

import pytest

from app.commands.carry_out import carry_out
from app.commands.options import Options
from app.services import Services
from app.settings import Settings, save_settings
from engine.errors import ModelDamaged, ModelNotFound
from tests.app.commands.console import Recorder
from tests.fakes_model import FakeModelServices


async def models(services: Services, action: str, **options: Any) -> Recorder:
    console = Recorder()
    await carry_out(services, Options(command="models", action=action, **options), console)
    return console


async def test_files_in_the_folder_are_listed(services: FakeModelServices) -> None:
    (services.paths.models / "größe.gguf").write_bytes(b"x" * 2_000_000)
    (services.paths.models / "readme.txt").write_text("no model")
    rows = (await models(services, "list", json=True)).json()["models"]
    row = rows[-1]
    assert (row["name"], row["bytes"]) == ("größe", 2_000_000)
    assert (row["starter"], row["chosen"]) == (False, False)
    assert "größe" in (await models(services, "list")).out


async def test_a_chosen_file_that_vanished_is_listed_with_nothing_in_it(
    services: FakeModelServices, home: Path
) -> None:
    save_settings(services.paths.settings, Settings(model=str(home / "gone.gguf")))
    again = Services(services.paths)
    rows = (await models(again, "list", json=True)).json()["models"]
    assert [(row["name"], row["bytes"]) for row in rows if row["chosen"]] == [("gone", 0)]
    await again.close()


async def test_a_name_a_file_name_and_a_path_find_the_same_model(
    services: FakeModelServices,
) -> None:
    file = services.paths.models / "mine.gguf"
    file.write_bytes(b"no model")
    for name in ("mine", "mine.gguf", str(file)):
        with pytest.raises(ModelDamaged, match="mine.gguf is not a GGUF model .8 bytes"):
            await models(services, "info", text=name)


@pytest.mark.parametrize("name", ["nobody", "~no-such-user/x.gguf", "/nowhere/x.gguf"])
async def test_no_file_is_a_sentence(services: FakeModelServices, name: str) -> None:
    with pytest.raises(ModelNotFound, match="There is no model file at /"):
        await models(services, "info", text=name)


@pytest.mark.model
async def test_the_facts_of_the_starter(services: FakeModelServices, starter: Path) -> None:
    facts = (await models(services, "info", json=True)).json()
    assert (facts["architecture"], facts["context"]) == ("llama", 8192)
    assert facts["parameters"] == 134_515_008
    # 30 layers, 3 heads of 64 values, keys and values of 2 bytes.
    assert facts["kv_bytes_per_token"] == 30 * 3 * 64 * 2 * 2
    assert facts["memory_bytes"] > starter.stat().st_size
    assert "Q4_1" in facts["quantization"]
    told = await models(services, "info", text="starter")
    assert "134" in told.out or "135" in told.out
    assert "often wrong" in told.notes[0].replace("\n", " ")


@pytest.mark.model
async def test_without_a_name_it_is_the_model_in_use(
    services: FakeModelServices, home: Path, starter: Path
) -> None:
    mine = home / "mine.gguf"
    mine.symlink_to(starter)
    named = Services(services.paths, str(mine))
    save_settings(services.paths.settings, Settings(model=str(mine)))
    for used in (named, Services(services.paths)):
        told = await models(used, "info")
        assert told.out.startswith("mine\n")
        assert told.notes == []
        await used.close()
