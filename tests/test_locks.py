"""The locks: every version, with hashes, for every system, and from no particular place."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "packaging" / "requirements"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def group(name: str) -> list[str]:
    """The requirements of a group, with those of the groups that it includes."""
    found: list[str] = []
    for entry in PYPROJECT["dependency-groups"][name]:
        found += [entry] if isinstance(entry, str) else group(entry["include-group"])
    return found


NAMED: dict[str, list[str]] = {
    "app": PYPROJECT["project"]["dependencies"],
    "build": group("build") + PYPROJECT["build-system"]["requires"],
    "starter": group("starter"),
    "embedder": group("embedder"),
    "test": group("test") + PYPROJECT["project"]["dependencies"],
}


def lock_text(name: str) -> str:
    return (LOCKS / f"{name}.lock").read_text(encoding="utf-8")


def entries(name: str) -> list[str]:
    """Each locked package with its marker and hashes, comments left out."""
    lines = [line for line in lock_text(name).splitlines() if not line.lstrip().startswith("#")]
    return "\n".join(lines).replace("\\\n", "").splitlines()


def versions(name: str) -> set[str]:
    return {entry.partition("--hash")[0].strip() for entry in entries(name)}


def package_name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return re.sub(r"[._-]+", "-", match.group()).lower()


@pytest.mark.parametrize("name", NAMED)
def test_every_entry_is_one_version_with_a_hash(name: str) -> None:
    form = r"[a-z0-9-]+==[^ ;]+( ; [^\\]+?)?( +--hash=sha256:[0-9a-f]{64})+"
    assert entries(name)
    assert [entry for entry in entries(name) if not re.fullmatch(form, entry)] == []


@pytest.mark.parametrize("name", NAMED)
def test_no_lock_says_where_packages_come_from(name: str) -> None:
    """An address of today may be gone next year; pip's own settings decide."""
    without_hashes = re.sub(r"--hash=sha256:[0-9a-f]{64}", "", lock_text(name))
    assert re.findall(r"--[a-z-]+|://|file:|@ ", without_hashes) == []


@pytest.mark.parametrize("name", NAMED)
def test_every_dependency_of_the_project_is_locked(name: str) -> None:
    locked = {package_name(entry) for entry in entries(name)}
    assert {package_name(requirement) for requirement in NAMED[name]} - locked == set()


def test_tests_run_on_the_versions_that_users_get() -> None:
    assert versions("app") - versions("test") == set()


@pytest.mark.parametrize("name", NAMED)
def test_torch_is_in_no_lock(name: str) -> None:
    locked = {package_name(entry) for entry in entries(name)}
    assert not locked & {"torch", "triton", "transformers"}


def test_windows_gets_what_only_windows_needs() -> None:
    assert any(
        entry.startswith("colorama==") and "sys_platform == 'win32'" in entry
        for entry in entries("test")
    )
