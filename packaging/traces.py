"""Traces of the machine that a package was made on: taken out where we may, and looked for."""

import importlib
import importlib.util
import marshal
import pprint
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEUTRAL = b"/usr"


def own_places() -> list[str]:
    """The folders of this machine that may have left their names in what was built here."""
    places = {str(ROOT), sys.prefix, sys.base_prefix, *map(str, _homes())}
    # A system's Python lies where every other one of its kind does.
    return sorted(places - {"/usr", "/usr/local"}, key=len, reverse=True)


def _homes() -> list[Path]:
    """Folders below the user's, not that one itself: on other machines people have the same."""
    return [Path.home() / ".cache", Path.home() / ".pyenv"]


def neutral(place: str) -> bytes:
    """A path of the same length below /usr, with the same last name.

    What stands behind it keeps its place; and a linker keeps one text that is the end of another
    inside it, as Python's version is of the folder it was installed in.
    """
    raw = place.encode()
    last = raw[raw.rindex(b"/") :]
    return NEUTRAL + (b"/." * len(raw))[: len(raw) - len(NEUTRAL) - len(last)] + last


def without_traces(content: bytes, places: Iterable[str]) -> bytes:
    for place in places:
        if place.rfind("/") >= len(NEUTRAL):
            content = content.replace(place.encode(), neutral(place))
    return content


def clean_build_facts(folder: Path) -> Path:
    """Write what Python knows of its own compilation without its places; returns `folder`.

    PyInstaller takes the module of this name from there when `folder` comes first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name: str = sysconfig._get_sysconfigdata_name()  # type: ignore[attr-defined]
    if importlib.util.find_spec(name) is None:
        return folder  # Windows' Python is not compiled where it is installed
    facts = importlib.import_module(name).build_time_vars
    text = f"build_time_vars = {pprint.pformat(facts)}\n".encode()
    (folder / f"{name}.py").write_bytes(without_traces(text, own_places()))
    return folder


def clean_binaries(folder: Path) -> list[Path]:
    """Take them out of the interpreter's own libraries, whose makers wrote its folder into them."""
    changed = []
    for file in sorted(folder.rglob("*")):
        if file.is_symlink() or not file.is_file():
            continue
        content = file.read_bytes()
        if not content.startswith(b"\x7fELF"):
            continue
        cleaned = without_traces(content, own_places())
        if cleaned != content:
            file.write_bytes(cleaned)
            changed.append(file)
    return changed


def find_traces(folder: Path, words: Iterable[str]) -> list[tuple[str, str]]:
    """Where one of the words stands: in a file, in its name, or in a module inside the program."""
    wanted = [(word, word.encode()) for word in words]
    found = []
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_symlink() or not file.is_file():
            continue
        for place, content in _parts(file, name):
            found += [(place, word) for word, raw in wanted if raw in content]
    return found


def _parts(file: Path, name: str) -> Iterator[tuple[str, bytes]]:
    yield name, file.read_bytes()
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            for member in wheel.namelist():
                yield f"{name}:{member}", wheel.read(member)
    if file.name in ("inglenook", "inglenook.exe"):
        from PyInstaller.archive.readers import (  # type: ignore[import-untyped]
            CArchiveReader,
        )

        archive = CArchiveReader(str(file))
        for entry in archive.toc:
            if not entry.endswith((".pyz", ".pyzz")):
                continue
            modules = archive.open_embedded_archive(entry)
            for module in modules.toc:
                code = modules.extract(module)
                yield f"{name}:{module}", b"" if code is None else marshal.dumps(code)
