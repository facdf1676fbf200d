"""The floors: a folder imports only to its right or below, and each library has one home."""

import ast
import functools
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT: dict[str, set[str]] = {
    "kernels": set(),
    "grammars": set(),
    "engine": {"kernels"},
    "app": {"engine", "grammars"},
}

UI_LIBRARIES = {"gradio", "gradio_client", "fastapi", "starlette", "uvicorn"}

# A library's errors and oddities are dealt with in its home, and nowhere else.
HOMES: dict[str, tuple[str, ...]] = {
    "llama_cpp": ("engine/backends/llama_cpp/",),
    "sqlite3": ("app/history/", "engine/kv/segment_index.py"),
    "sqlite_utils": ("app/history/", "app/documents/"),
    "watchfiles": ("app/documents/watch.py",),
    "gradio": ("app/ui/", "app/web/"),
    "PIL": ("app/media/picture.py", "app/documents/parsers/picture.py"),
    "httpx": ("app/models/outside.py",),
    "llguidance": ("engine/guided/",),
    "jsonschema": ("engine/guided/",),
    "lxml": ("app/documents/markup.py",),
    "pypdfium2": ("app/documents/parsers/",),
    "charset_normalizer": ("app/documents/encoding.py",),
    "rapidocr": ("app/documents/rapid.py",),
    "cv2": ("app/documents/rapid.py",),
    "torch": ("kernels/", "engine/backends/torch/"),
    "transformers": ("engine/backends/torch/pretrained.py",),
    "triton": ("kernels/language.py",),
}

# Of extras, which need not be installed here.
OTHER_NAMES = {"cv2": "opencv-python-headless"}

ENGINE_THREAD = "engine/async_engine.py"
PAGE_FOLDERS = ("app/ui/", "app/web/")


def source_files() -> list[Path]:
    return sorted(file for folder in MAY_IMPORT for file in (ROOT / folder).rglob("*.py"))


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def imported_modules(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: import by the full path"
            assert node.module is not None
            yield node.module


def imported_names(file: Path) -> set[str]:
    return {module.partition(".")[0] for module in imported_modules(file)}


def catches_everything(file: Path) -> bool:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            caught = [node.type] if node.type is None else list(ast.walk(node.type))
            if any(
                part is None or isinstance(part, ast.Name) and part.id == "Exception"
                for part in caught
            ):
                return True
    return False


@pytest.mark.parametrize("file", source_files(), ids=name_of)
def test_imports_point_down(file: Path) -> None:
    folder = file.relative_to(ROOT).parts[0]
    forbidden = set(MAY_IMPORT) - {folder} - MAY_IMPORT[folder]
    if folder != "app":
        forbidden |= UI_LIBRARIES
    assert not forbidden & imported_names(file)


@pytest.mark.parametrize("file", source_files(), ids=name_of)
def test_a_library_is_imported_only_at_home(file: Path) -> None:
    strangers = {
        library
        for library, homes in HOMES.items()
        if library in imported_names(file) and not name_of(file).startswith(homes)
    }
    assert not strangers


@pytest.mark.parametrize("file", source_files(), ids=name_of)
def test_every_import_is_named_in_the_project(file: Path) -> None:
    """A library that only comes along with another one may go away with it."""
    foreign = imported_names(file) - set(MAY_IMPORT) - set(sys.stdlib_module_names)
    assert {name for name in foreign if not distributions(name) & named_dependencies()} == set()


@functools.cache
def owners() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def distributions(module: str) -> set[str]:
    return {normal(name) for name in owners().get(module, [OTHER_NAMES.get(module, module)])}


@functools.cache
def named_dependencies() -> frozenset[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    requirements = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["cuda"],
        *project["project"]["optional-dependencies"]["ocr"],
        *project["dependency-groups"]["starter"],
    ]
    return frozenset(normal(re.split(r"[^A-Za-z0-9._-]", line)[0]) for line in requirements)


def normal(name: str) -> str:
    return re.sub(r"[._-]+", "-", name).lower()


def test_everything_is_caught_only_in_the_engine_thread_and_at_the_pages_boundary() -> None:
    catching = {name_of(file) for file in source_files() if catches_everything(file)}
    boundary = catching - {ENGINE_THREAD}
    assert len(boundary) <= 1, boundary
    assert all(name.startswith(PAGE_FOLDERS) for name in boundary)


def test_the_tests_catch_it_where_everything_is_caught(tmp_path: Path) -> None:
    for number, handler in enumerate(
        ("except:", "except Exception:", "except (OSError, Exception):")
    ):
        file = tmp_path / f"{number}.py"
        file.write_text(f"try:\n    pass\n{handler}\n    pass\n")
        assert catches_everything(file), handler
    file = tmp_path / "narrow.py"
    file.write_text("try:\n    pass\nexcept (OSError, ValueError):\n    pass\n")
    assert not catches_everything(file)
