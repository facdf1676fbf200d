"""The models of a home: listed with a verdict, added, copied, removed, and downloaded by a name."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.amounts import bytes_in_words
from app.models.catalog import catalog
from app.models.fit import Room, Verdict
from app.models.library import Listed, ModelLibrary
from app.models.shelf import Brought
from app.paths import Paths
from app.settings import Settings
from engine.errors import ModelDamaged, ModelNotFound, ModelUnsupported, UsageError
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes_hub import FakeHub

HUGE = 2**31 - 1


@pytest.fixture
async def library(paths: Paths) -> AsyncIterator[ModelLibrary]:
    library = ModelLibrary(paths, Settings)
    yield library
    await library.close()


async def listed(library: ModelLibrary, name: str) -> Listed:
    (found,) = [each for each in await library.here() if each.model.name == name]
    return found


async def test_each_model_has_a_verdict_or_the_reason_why_not(
    library: ModelLibrary, paths: Paths
) -> None:
    write_tiny_model(paths.models / "tiny.gguf")
    (paths.models / "page.gguf").write_bytes(b"<html>")
    tiny, page = await listed(library, "tiny"), await listed(library, "page")
    assert tiny.fit is not None and tiny.fit.verdict is Verdict.FITS
    assert page.fit is None and "is not a GGUF model (6 bytes)" in page.look.problem


async def test_a_context_that_does_not_fit_says_which_would(paths: Paths) -> None:
    path = write_tiny_model(paths.models / "tiny.gguf")
    own = {str(path): {"context_tokens": HUGE}}
    library = ModelLibrary(paths, lambda: Settings(by_model=own))
    found = await listed(library, "tiny")
    assert found.fit is not None and found.fit.verdict is Verdict.NOT
    assert library.instead(found) == "It fits with a context of 65,536 tokens."


def test_an_added_file_stays_where_it_is_and_is_only_forgotten(
    library: ModelLibrary, tmp_path: Path
) -> None:
    path = write_tiny_model(tmp_path / "mine.gguf")
    model = library.add(path)
    assert (model.name, model.path, model.source) == ("mine", path, "added")
    assert library.check_removal(library.find("mine")).startswith("Forget where mine is?")
    library.remove(model)
    assert path.exists()
    with pytest.raises(ModelNotFound, match="no model 'mine' here"):
        library.find("mine")


async def test_an_adapter_is_added_and_listed_as_what_it_is(
    library: ModelLibrary, tmp_path: Path
) -> None:
    library.add(write_tiny_adapter(tmp_path / "pirate.gguf"))
    pirate = await listed(library, "pirate")
    assert pirate.look.is_adapter and pirate.fit is None and pirate.look.problem == ""
    broken = write_tiny_adapter(tmp_path / "broken.gguf", changed={})
    with pytest.raises(ModelDamaged, match="changes nothing"):
        library.add(broken)
    assert [each.name for each in library.shelf.added()] == ["pirate.gguf"]


async def test_the_adapters_of_a_model_count_in_its_verdict(paths: Paths, tmp_path: Path) -> None:
    path = write_tiny_model(paths.models / "tiny.gguf")
    pirate = write_tiny_adapter(tmp_path / "pirate.gguf")
    own = {str(path): {"adapters": [{"file": str(pirate), "scale": 1.0}]}}
    plain = await listed(ModelLibrary(paths, Settings), "tiny")
    adapted = await listed(ModelLibrary(paths, lambda: Settings(by_model=own)), "tiny")
    assert plain.fit is not None and adapted.fit is not None
    assert adapted.fit.needed_bytes - plain.fit.needed_bytes == pirate.stat().st_size


def test_a_copy_is_ours_and_is_deleted(library: ModelLibrary, paths: Paths, tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "mine.gguf")
    model = library.add(path, is_copied=True)
    assert (model.path, model.is_ours) == (paths.models / "mine.gguf", True)
    assert model.path.read_bytes() == path.read_bytes()
    with pytest.raises(UsageError, match="is in the models folder already"):
        library.add(path, is_copied=True)
    size = bytes_in_words(path.stat().st_size)
    assert library.check_removal(model) == f"Delete mine ({size}) from the disk?"
    library.remove(model)
    assert not model.path.exists() and path.exists()


def test_a_file_that_takes_the_name_while_it_is_copied_keeps_it(
    library: ModelLibrary, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tiny_model(tmp_path / "mine.gguf")
    copy = shutil.copyfile

    def copy_slowly(source: Path, target: Path) -> None:
        copy(source, target)
        (paths.models / "mine.gguf").write_bytes(b"another")

    monkeypatch.setattr("app.models.library.shutil.copyfile", copy_slowly)
    with pytest.raises(UsageError, match="There is a file .*mine.gguf already"):
        library.add(path, is_copied=True)
    assert [each.read_bytes() for each in paths.models.iterdir()] == [b"another"]


def test_a_folder_means_the_one_model_in_it_and_any_part_the_first(
    library: ModelLibrary, tmp_path: Path
) -> None:
    tiny = write_tiny_model(tmp_path / "tiny.gguf").read_bytes()
    folder = tmp_path / "one"
    folder.mkdir()
    parts = [folder / f"big-0000{number}-of-00002.gguf" for number in (1, 2)]
    for part in parts:
        part.write_bytes(tiny)
    assert library.add(folder).path == parts[0]
    assert library.add(parts[1]).path == parts[0]
    (folder / "other.gguf").write_bytes(tiny)
    with pytest.raises(UsageError, match="has 2 models: name one of them"):
        library.add(folder)


def test_what_cannot_chat_is_not_added(library: ModelLibrary, tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_bytes(b"<html>")
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ModelDamaged):
        library.add(tmp_path / "page.gguf")
    (tmp_path / "page.gguf").unlink()
    with pytest.raises(ModelUnsupported, match="in safetensors files"):
        library.add(tmp_path)
    assert library.shelf.added() == []


def test_what_somebody_else_put_there_is_not_deleted(library: ModelLibrary, paths: Paths) -> None:
    path = write_tiny_model(paths.models / "theirs.gguf")
    with pytest.raises(UsageError, match="was not brought by this app"):
        library.remove(library.find("theirs"))
    with pytest.raises(UsageError, match="comes with the app"):
        library.remove(library.find("starter"))
    assert path.exists()


def test_all_parts_of_a_model_go(library: ModelLibrary, paths: Paths, tmp_path: Path) -> None:
    tiny = write_tiny_model(tmp_path / "tiny.gguf").read_bytes()
    parts = [paths.models / f"big-0000{number}-of-00002.gguf" for number in (1, 2)]
    for part in parts:
        part.write_bytes(tiny)
    library.shelf.note_brought(Brought(parts[0].name, "a/b", "Q8_0"))
    library.remove(library.find("big"))
    assert not any(part.exists() for part in parts)
    assert library.shelf.brought() == []


async def test_a_name_of_the_catalogue_brings_its_usual_size(
    library: ModelLibrary, hub: FakeHub, paths: Paths
) -> None:
    repo = "Qwen/Qwen3-4B-GGUF"
    hub.files[repo] = {f"Qwen3-4B-{name}.gguf": name.encode() for name in ("Q8_0", "Q4_K_M")}
    name = await library.download("qwen3-4b")
    await library.downloads.wait(name, lambda download: None)
    assert name == "Qwen3-4B-Q4_K_M"
    name = await library.download("qwen3-4b", "Q8_0")
    await library.downloads.wait(name, lambda download: None)
    assert [each.file for each in library.shelf.brought()] == [
        "Qwen3-4B-Q4_K_M.gguf",
        "Qwen3-4B-Q8_0.gguf",
    ]
    with pytest.raises(UsageError, match="The catalogue has no 'gpt-9'"):
        await library.download("gpt-9")


def test_the_catalogue_has_a_verdict_for_every_size(library: ModelLibrary) -> None:
    found = library.available(catalog())
    assert len(found) == sum(len(model.sizes) for model in catalog())
    assert {each.fit.verdict for each in found} <= set(Verdict)
    assert all(each.fit.why for each in found)


def test_where_a_size_does_not_fit_what_would_is_named(
    library: ModelLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "room", lambda: Room(5 * 10**9, 64 * 10**9))
    found = {(each.model.name, each.quantization): each for each in library.available(catalog())}
    assert found["qwen3-4b", "Q4_K_M"].instead == ""
    # A coarser one of the same model, or else another model.
    assert found["qwen3-4b", "Q8_0"].instead == "Q6_K"
    assert found["qwen3-14b", "Q4_K_M"].instead == library.largest_of_catalog() != ""


async def test_nothing_is_asked_of_anybody_by_looking(library: ModelLibrary, hub: FakeHub) -> None:
    await library.here()
    library.available(catalog())
    assert hub.asked == [] and library.connections.all() == []
