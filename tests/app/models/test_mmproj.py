"""Which file a model sees by: found by names, as people and makers lay them out."""

from pathlib import Path

import pytest

from app.models.library import ModelLibrary
from app.models.local import list_models, model_facts
from app.models.mmproj import mmproj_beside, own_mmproj
from app.models.shelf import Brought
from app.paths import Paths
from app.settings import Settings
from engine.config import EngineConfig
from tests.engine.backends.llama_cpp.tiny_mmproj import write_tiny_mmproj
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


@pytest.mark.parametrize(
    ("model", "others", "expected"),
    [
        ("gemma-3-4b-Q4_K_M", ["mmproj-gemma-3-4b-f16", "x-Q8_0"], "mmproj-gemma-3-4b-f16"),
        ("SmolVLM-500M-Q8_0", ["mmproj-SmolVLM-500M-Q8_0"], "mmproj-SmolVLM-500M-Q8_0"),
        ("pixtral-12b-UD-Q4_K_XL", ["mmproj-F16", "pixtral-12b-Q8_0"], "mmproj-F16"),
        ("llava-v1.6.Q4_K_M", ["mmproj-model-f16"], "mmproj-model-f16"),
        ("a-Q4_K_M", ["a.mmproj-BF16"], "a.mmproj-BF16"),
        # Without a name, and there is another model it may belong to.
        ("a-Q4_K_M", ["mmproj-F16", "b-Q4_K_M"], None),
        ("a-1b-Q4_K_M", ["mmproj-a-4b-f16"], None),
        ("a-Q4_K_M", ["a-Q8_0"], None),
        # Ours goes before all others.
        ("a-Q4_K_M", ["mmproj-a-Q4_K_M", "mmproj-a-f16"], "mmproj-a-Q4_K_M"),
    ],
)
def test_the_part_of_a_model_is_found_beside_it(
    model: str, others: list[str], expected: str | None, tmp_path: Path
) -> None:
    for name in (model, *others):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF")
    found = mmproj_beside(tmp_path / f"{model}.gguf")
    assert (found.stem if found else None) == expected


def test_a_model_in_a_folder_that_is_gone_has_none(tmp_path: Path) -> None:
    assert mmproj_beside(tmp_path / "gone" / "m.gguf") is None
    assert mmproj_beside(Path()) is None


def test_it_is_told_of_with_its_model_and_counted(paths: Paths) -> None:
    model = write_tiny_model(paths.models / "tiny-Q8_0.gguf")
    alone = Settings().engine_config(model)
    assert alone.mmproj_path is None
    without = model_facts(alone)
    mmproj = write_tiny_mmproj(own_mmproj(model), "mlp")
    listed = [each for each in list_models(paths, Settings()) if not each.is_starter]
    assert [(each.path, each.mmproj) for each in listed] == [(model, mmproj)]
    assert Settings().engine_config(model).mmproj_path == mmproj
    facts = model_facts(Settings().engine_config(model))
    assert facts.reads == ("images",) and facts.as_json()["mmproj"] == str(mmproj)
    assert facts.memory_bytes > without.memory_bytes + mmproj.stat().st_size
    mmproj.write_bytes(b"GGUF")
    assert "cut off or damaged" in model_facts(Settings().engine_config(model)).media_refusal


async def test_it_counts_in_whether_a_model_fits(paths: Paths) -> None:
    model = write_tiny_model(paths.models / "tiny-Q8_0.gguf")
    library = ModelLibrary(paths, Settings)
    look = library.looks.at(model)
    before = library.fit_of(model, look)
    write_tiny_mmproj(own_mmproj(model), "mlp")
    after = library.fit_of(model, look)
    assert before is not None and after is not None
    assert after.needed_bytes > before.needed_bytes
    assert library.config(model) == EngineConfig(
        model_path=model, mmproj_path=own_mmproj(model), kv_folder=None
    )


async def test_what_came_with_a_model_goes_with_it(paths: Paths) -> None:
    model = write_tiny_model(paths.models / "tiny-Q8_0.gguf")
    mmproj = write_tiny_mmproj(own_mmproj(model), "mlp")
    library = ModelLibrary(paths, Settings)
    library.shelf.note_brought(Brought(model.name))
    library.remove(library.find("tiny-Q8_0"))
    assert not model.exists() and not mmproj.exists()


async def test_a_folder_with_both_is_one_model_and_both_are_copied(
    paths: Paths, tmp_path: Path
) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    write_tiny_model(folder / "tiny-Q8_0.gguf")
    write_tiny_mmproj(folder / "mmproj-F16.gguf", "mlp")
    added = ModelLibrary(paths, Settings).add(folder, is_copied=True)
    assert added.path == paths.models / "tiny-Q8_0.gguf"
    assert added.mmproj == own_mmproj(added.path)
    assert added.mmproj.read_bytes() == (folder / "mmproj-F16.gguf").read_bytes()
