"""Names that are ours alone, and names that may not appear in any file of the project."""

import importlib.metadata
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Spelled in pieces, so that this file passes too.
MACHINE_PATHS = tuple(f"/{folder}/" for folder in ("work", "root"))
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs"),
        ("deb", "debian", "org"),
    )
)


def project_files() -> list[Path]:
    """What git holds or would add; in an archive without git, what lies here but caches."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        files = [
            file
            for file in ROOT.rglob("*")
            if not any(part.startswith(".") or part == "build" for part in file.parts)
        ]
    return [file for file in files if file.is_file()]


def test_packaging_is_a_folder_of_scripts() -> None:
    """With an __init__.py it would hide the `packaging` library."""
    assert not (ROOT / "packaging" / "__init__.py").exists()


@pytest.mark.parametrize("name", ["app", "engine", "kernels", "grammars", "tests"])
def test_nobody_else_installed_our_names(name: str) -> None:
    """Hugging Face publishes a `kernels` too; installed together, one overwrites the other."""
    owners = importlib.metadata.packages_distributions()
    assert set(owners.get(name, [])) <= {"inglenook"}


def test_no_file_names_this_machine_or_a_registry() -> None:
    found = []
    for file in project_files():
        text = file.read_bytes().decode("utf-8", errors="replace").lower()
        found += [
            (file.relative_to(ROOT).as_posix(), word)
            for word in (*MACHINE_PATHS, *REGISTRIES)
            if word in text
        ]
    assert not found


def test_the_forbidden_names_are_looked_for_in_more_than_a_few_files() -> None:
    names = {file.relative_to(ROOT).as_posix() for file in project_files()}
    assert {"pyproject.toml", "Makefile", "engine/errors.py", "tests/test_names.py"} <= names
