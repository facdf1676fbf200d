"""`models`: what is here, and what a file is."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.commands.carry_out import carry_out
from app.commands.models import Telling
from app.commands.options import Options
from app.machine.rates import Rates
from app.models.pace import Pace, PaceBook
from app.models.way import Download, DownloadState
from app.services import Services
from app.settings import Settings, load_settings, save_settings
from engine.errors import ModelDamaged, ModelNotFound, ModelUnsupported, UsageError
from tests.app.commands.console import Recorder
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes_hub import FakeHub
from tests.fakes_model import FakeModelServices
from tests.waiting import until


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


async def test_a_file_is_added_used_and_forgotten(services: FakeModelServices, home: Path) -> None:
    path = write_tiny_model(home / "mine.gguf")
    told = await models(services, "use", text=str(path), json=True)
    assert (await models(services, "add", file=str(path), json=True)).json()["name"] == "mine"
    assert told.json() == {"name": "mine", "path": str(path), "notice": ""}
    assert Settings(model=str(path)) == load_settings(services.paths.settings)
    with pytest.raises(UsageError, match="is the model that answers"):
        await models(services, "remove", text="mine", yes=True)
    await models(services, "use", text="starter")
    with pytest.raises(UsageError, match="Nothing was done: say so with --yes"):
        await models(services, "remove", text="mine")
    assert (await models(services, "remove", text="mine", yes=True, json=True)).json() == {
        "removed": "mine",
        "path": str(path),
    }
    assert path.exists()


async def test_a_name_that_controls_the_terminal_is_shown_without_that(
    services: FakeModelServices,
) -> None:
    name = "red\x1b[31m\nline"
    file = write_tiny_model(services.paths.models / f"{name}.gguf")
    for told in (
        await models(services, "list"),
        await models(services, "info", text=name),
        await models(services, "add", file=str(file)),
    ):
        assert "red\ufffd[31m\ufffdline" in told.out
        assert "\x1b" not in told.out and "\nline" not in told.out


async def test_a_context_beyond_what_a_model_was_made_for_is_said(
    services: FakeModelServices,
) -> None:
    path = write_tiny_model(services.paths.models / "tiny.gguf")
    for tokens, is_said in ((256, False), (65_536, True)):
        own = {str(path): {"context_tokens": tokens}}
        services.save_settings(Settings(by_model=own))
        for told in (
            await models(services, "info", text="tiny"),
            await models(services, "use", text="tiny"),
        ):
            assert ("and no chat uses more than that" in " ".join(told.notes)) == is_said


async def test_a_name_that_two_models_have_removes_neither(
    services: FakeModelServices, home: Path
) -> None:
    own = write_tiny_model(services.paths.models / "extra.gguf")
    (home / "elsewhere").mkdir()
    added = write_tiny_model(home / "elsewhere" / "extra.gguf")
    await models(services, "add", file=str(added))
    for name in ("extra", "extra (2)", "extra.gguf"):
        with pytest.raises(UsageError, match="2 models are called 'extra'") as raised:
            await models(services, "remove", text=name, yes=True)
        assert str(own) in str(raised.value) and str(added) in str(raised.value)
    told = await models(services, "remove", text=str(added), yes=True)
    assert told.out == f"extra (2) is removed ({added}).\n"
    with pytest.raises(ModelNotFound):
        await models(services, "remove", text=str(added), yes=True)
    assert own.exists() and services.library.shelf.added() == []


async def test_what_cannot_be_used_is_not_chosen(services: FakeModelServices) -> None:
    (services.paths.models / "page.gguf").write_bytes(b"<html>")
    with pytest.raises(ModelDamaged):
        await models(services, "use", text="page")
    assert services.settings.model == ""


async def test_the_catalogue_is_listed_with_what_each_size_means(
    services: FakeModelServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = (await models(services, "list", available=True, json=True)).json()["models"]
    one = next(row for row in rows if row["name"] == "qwen3-4b" and row["quantization"] == "Q4_K_M")
    assert (one["licence"], one["bytes"]) == ("Apache-2.0", 2_500_000_000)
    assert one["fit"]["verdict"] in ("fits well", "tight", "does not fit")
    pace = Pace(rates=Rates(20e9, 200e9, 4))
    monkeypatch.setattr(PaceBook, "known", lambda self, model: pace)
    monkeypatch.setattr(PaceBook, "kept", lambda self: pace)
    told = await models(services, "list", available=True)
    assert "qwen3-4b: Qwen3 4B, Apache-2.0" in told.out
    assert "tokens/s, and " in told.out
    assert any("the usual choice" in note for note in told.notes)


async def test_a_download_tells_its_way(services: FakeModelServices) -> None:
    console = Recorder()
    telling = Telling(console)
    telling._told_at -= 10
    telling.hear(
        Download(
            name="m",
            repo="a/b",
            quantization="Q8_0",
            state=DownloadState.RUNNING,
            num_bytes=500_000_000,
            total_bytes=2_000_000_000,
            bytes_per_s=10_000_000,
        )
    )
    assert console.notes == ["m: 25 %, 500 MB of 2 GB, 10 MB/s, 2 min left"]


async def test_what_was_downloaded_is_named_as_the_list_shows_it(
    services: FakeModelServices, monkeypatch: pytest.MonkeyPatch, starter: Path
) -> None:
    with FakeHub().serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.files["a/b"] = {"starter.gguf": b"GGUF"}
        told = await models(services, "download", text="a/b")
    listed = (await models(services, "list", json=True)).json()["models"]
    assert "starter (2)" in [each["name"] for each in listed]
    assert told.out == 'starter (2) is here: `inglenook models use "starter (2)"`.\n'


async def test_a_command_that_is_ended_leaves_the_download_paused(
    services: FakeModelServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeHub().serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.files["a/b"] = {"slow-Q8_0.gguf": bytes(50_000_000)}
        hub.wrong.bytes_per_s = 2_000_000
        command = asyncio.create_task(models(services, "download", text="a/b:Q8_0"))
        await until(lambda: services.library.downloads.all())
        await until(lambda: services.library.downloads.all()[0].num_bytes > 0)
        command.cancel()
        await asyncio.wait([command])
        (download,) = services.library.downloads.all()
        assert download.state is DownloadState.PAUSED


async def test_an_adapter_is_listed_with_its_kind_and_what_it_is_made_for(
    services: FakeModelServices,
) -> None:
    facts = {"general.base_model.0.name": "Tiny 1B"}
    pirate = write_tiny_adapter(services.paths.models / "pirate.gguf", facts=facts)
    rows = {
        each["name"]: each for each in (await models(services, "list", json=True)).json()["models"]
    }
    assert (rows["pirate"]["kind"], rows["starter"]["kind"]) == ("adapter", "model")
    assert (rows["pirate"]["architecture"], rows["pirate"]["base_model"]) == ("llama", "Tiny 1B")
    said = (await models(services, "list")).out
    assert "a LoRA adapter for llama models, made for Tiny 1B: `--lora pirate` uses it" in said
    facts_told = (await models(services, "info", text="pirate", json=True)).json()
    assert (facts_told["kind"], facts_told["memory_bytes"]) == ("adapter", pirate.stat().st_size)
    assert "besides its model" in (await models(services, "info", text="pirate")).out


async def test_the_adapters_of_a_model_are_named_and_counted(services: FakeModelServices) -> None:
    tiny = write_tiny_model(services.paths.models / "tiny.gguf")
    pirate = write_tiny_adapter(services.paths.models / "pirate.gguf")
    before = (await models(services, "info", text="tiny", json=True)).json()
    chosen = [{"file": str(pirate), "scale": 0.5}]
    services.save_settings(Settings(by_model={str(tiny): {"adapters": chosen}}))
    after = (await models(services, "info", text="tiny", json=True)).json()
    assert (before["adapters"], after["adapters"]) == ([], chosen)
    assert after["memory_bytes"] - before["memory_bytes"] == pirate.stat().st_size
    assert f"{pirate} at 0.5" in (await models(services, "info", text="tiny")).out


async def test_added_adapters_say_how_they_are_used(
    services: FakeModelServices, home: Path
) -> None:
    path = write_tiny_adapter(home / "pirate.gguf")
    assert "`inglenook run --lora pirate`" in (await models(services, "add", file=str(path))).out
    with pytest.raises(
        ModelUnsupported, match="pirate.gguf is a LoRA adapter, which changes a model"
    ):
        await models(services, "use", text="pirate")
