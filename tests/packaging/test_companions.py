"""The wheels beside the program are ours as a whole, and the engine's."""

import sys
import zipfile
from pathlib import Path

import bundle
import pytest
import traces
from companions import lay_companions

from app.cuda.wheels import FOLDER, brought
from app.version import VERSION

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="a Mac's package has none")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("Ein Programm")
    engine = folder / "llama_cpp_python-9.9.9-py3-none-any.whl"
    engine.write_bytes(b"PK\5\6" + bytes(18))
    program = folder / "inglenook" / "inglenook"
    program.parent.mkdir()
    lay_companions(program, engine, folder / "work")
    return program


def test_the_program_finds_them(program: Path) -> None:
    folder = brought(program)
    assert folder == program.parent / FOLDER
    assert len(list(folder.iterdir())) == 2
    assert (folder / "llama_cpp_python-9.9.9-py3-none-any.whl").exists()
    assert brought(program.parent / "elsewhere" / "inglenook") is None


def test_our_wheel_has_every_module_and_every_file_of_data(program: Path) -> None:
    (wheel,) = (program.parent / FOLDER).glob(f"inglenook-{VERSION}-*.whl")
    with zipfile.ZipFile(wheel) as file:
        held = set(file.namelist())
        metadata = file.read(f"inglenook-{VERSION}.dist-info/METADATA").decode()
    modules = {name.replace(".", "/") for name in bundle.our_modules()}
    assert {name for name in modules if not held & {f"{name}.py", f"{name}/__init__.py"}} == set()
    data = {f"{folder}/{Path(file).name}" for file, folder in bundle.our_data()}
    assert data - held == set()
    assert "Provides-Extra: cuda" in metadata


def test_they_tell_nothing_of_this_machine(program: Path) -> None:
    assert traces.find_traces(program.parent / FOLDER, traces.own_places()) == []
