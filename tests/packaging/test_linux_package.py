"""Linux's archive and .deb, made from a small stand-in for the program, installed and removed."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import linux_package
import pytest
from engine_wheel import BuildError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="packages of Linux")

PROGRAM = "#!/bin/sh\necho it runs\n"
UGLY = 'Jürgen & Söhne, 100 % "$HOME" `x` \\o/'


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    folder = tmp_path / "frozen" / "inglenook"
    (folder / "_internal").mkdir(parents=True)
    shutil.copyfile("/bin/ls", folder / "_internal" / "libreal.so")
    (folder / "_internal" / "link.so").symlink_to("libreal.so")
    program = folder / "inglenook"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    for name in linux_package.DOCUMENTS:
        (folder / name).write_text(f"This is {name}.\n")
    return folder


@pytest.fixture
def unpacked(frozen: Path, tmp_path: Path) -> Path:
    into = tmp_path / "dist"
    into.mkdir()
    archive = linux_package.make_archive(frozen, "0.1.0", into, tmp_path / "work")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path / "unpacked", filter="tar")
    return tmp_path / "unpacked" / "inglenook-0.1.0-linux-x86_64"


@pytest.fixture
def person(tmp_path: Path) -> dict[str, str]:
    """Somebody whose name needs every mark that a shell and a desktop entry know."""
    home = tmp_path / UGLY.replace("/", "_")
    home.mkdir()
    return {"HOME": str(home), "PATH": os.environ["PATH"]}


def run(script: Path, person: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(script), *arguments], env=person, capture_output=True, text=True)


def program_of(entry: Path) -> str:
    """What a desktop would start: the value's own escapes first, then those inside the quotes."""
    (value,) = re.findall(r"^Exec=(.*)$", entry.read_text(encoding="utf-8"), re.MULTILINE)
    value = re.sub(r"\\(.)", r"\1", value).replace("%%", "%")
    quoted = re.fullmatch(r'"((?:[^"\\`$]|\\.)*)"', value)
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else value


def test_the_archive_is_one_folder_that_belongs_to_nobody_here(
    frozen: Path, tmp_path: Path
) -> None:
    archive = linux_package.make_archive(frozen, "0.1.0", tmp_path, tmp_path / "work")
    with tarfile.open(archive) as file:
        entries = file.getmembers()
    assert {entry.name.partition("/")[0] for entry in entries} == {"inglenook-0.1.0-linux-x86_64"}
    assert {(entry.uid, entry.gid, entry.uname) for entry in entries} == {(0, 0, "root")}


def test_an_installation_runs_from_a_home_whose_name_needs_quoting(
    unpacked: Path, person: dict[str, str]
) -> None:
    done = run(unpacked / "install.sh", person)
    assert done.returncode == 0, done.stderr
    home = Path(person["HOME"])
    program = home / ".local/opt/inglenook/inglenook"
    entry = home / ".local/share/applications/inglenook.desktop"
    assert program_of(entry) == str(program)
    assert os.readlink(home / ".local/bin/inglenook") == str(program)
    assert (home / ".local/share/icons/hicolor/scalable/apps/inglenook.svg").exists()
    assert (program.parent / "_internal" / "link.so").is_symlink()
    started = subprocess.run([program_of(entry)], capture_output=True, text=True)
    assert started.stdout == "it runs\n"


def test_a_second_installation_replaces_the_first(unpacked: Path, person: dict[str, str]) -> None:
    folder = Path(person["HOME"]) / ".local/opt/inglenook"
    assert run(unpacked / "install.sh", person).returncode == 0
    (folder / "of the old version").touch()
    assert run(unpacked / "install.sh", person).returncode == 0
    assert not (folder / "of the old version").exists()
    assert [each.name for each in folder.parent.iterdir()] == ["inglenook"]


def test_removing_it_keeps_the_conversations_unless_told_otherwise(
    unpacked: Path, person: dict[str, str]
) -> None:
    home = Path(person["HOME"])
    data = home / ".local/share/inglenook"
    data.mkdir(parents=True)
    (data / "history.sqlite3").touch()
    before = {each for each in home.rglob("*") if not each.is_dir()}
    assert run(unpacked / "install.sh", person).returncode == 0
    removed = run(home / ".local/opt/inglenook/uninstall.sh", person)
    assert removed.returncode == 0, removed.stderr
    assert str(data) in removed.stdout
    assert {each for each in home.rglob("*") if not each.is_dir()} == before
    assert run(unpacked / "install.sh", person).returncode == 0
    removed = run(home / ".local/opt/inglenook/uninstall.sh", person, "--with-conversations")
    assert removed.returncode == 0, removed.stderr
    assert not data.exists()


def test_it_removes_nothing_where_nothing_is_installed(
    unpacked: Path, person: dict[str, str]
) -> None:
    refused = run(unpacked / "uninstall.sh", person)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert (unpacked / "inglenook").exists()


def test_without_a_home_a_folder_can_be_named(unpacked: Path, tmp_path: Path) -> None:
    without = {"PATH": os.environ["PATH"]}
    refused = run(unpacked / "install.sh", without)
    assert refused.returncode == 1
    assert "--prefix" in refused.stderr and refused.stderr.count("\n") == 1
    prefix = tmp_path / "elsewhere"
    assert run(unpacked / "install.sh", without, "--prefix", str(prefix)).returncode == 0
    assert (prefix / "opt/inglenook/inglenook").exists()
    assert program_of(prefix / "share/applications/inglenook.desktop").startswith(str(prefix))


def test_a_program_that_runs_is_not_replaced(
    frozen: Path, tmp_path: Path, person: dict[str, str]
) -> None:
    shutil.copyfile(shutil.which("sleep") or "/bin/sleep", frozen / "inglenook")
    archive = linux_package.make_archive(frozen, "0.1.0", tmp_path, tmp_path / "work")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="tar")
    script = tmp_path / "inglenook-0.1.0-linux-x86_64" / "install.sh"
    assert run(script, person).returncode == 0
    program = Path(person["HOME"]) / ".local/opt/inglenook/inglenook"
    with subprocess.Popen([str(program), "60"]) as running:
        refused = run(script, person)
        running.kill()
    assert refused.returncode == 1
    assert "quit it" in refused.stderr and refused.stderr.count("\n") == 1


def test_a_system_with_an_older_c_library_is_told_so(
    unpacked: Path, person: dict[str, str]
) -> None:
    script = unpacked / "install.sh"
    script.write_text(re.sub(r'"\d+\.\d+"', '"9.99"', script.read_text()))
    refused = run(script, person)
    assert refused.returncode == 1
    assert "glibc" in refused.stderr and refused.stderr.count("\n") == 1


def test_the_needed_c_library_is_the_newest_that_anything_asks_for(tmp_path: Path) -> None:
    for name, version in (("a.so", b"2.9"), ("b.so", b"2.17"), ("c.so", b"2.4")):
        (tmp_path / name).write_bytes(b"\x7fELF\0GLIBC_" + version + b"\0GLIBCXX_3.4.99\0")
    (tmp_path / "text").write_bytes(b"\0GLIBC_2.99\0")
    assert linux_package.needed_glibc(tmp_path) == "2.17"


def test_a_folder_without_any_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no Linux program"):
        linux_package.needed_glibc(tmp_path)


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb")
def test_the_deb_has_a_command_a_menu_entry_and_the_licences(frozen: Path, tmp_path: Path) -> None:
    package = linux_package.make_deb(frozen, "0.1.0", tmp_path, tmp_path / "work")
    root = tmp_path / "root"
    subprocess.run(["dpkg-deb", "-x", str(package), str(root)], check=True)
    started = subprocess.run([str(root / "usr/bin/inglenook")], capture_output=True, text=True)
    assert started.stdout == "it runs\n"
    assert program_of(root / "usr/share/applications/inglenook.desktop") == "/usr/bin/inglenook"
    assert "THIRD-PARTY" in (root / "usr/share/doc/inglenook/copyright").read_text()
    fields = subprocess.run(["dpkg-deb", "-f", str(package)], capture_output=True, text=True).stdout
    glibc = linux_package.needed_glibc(frozen)
    assert f"Depends: libc6 (>= {glibc})\n" in fields
    owners = subprocess.run(["dpkg-deb", "-c", str(package)], capture_output=True, text=True).stdout
    assert all(" root/root " in line for line in owners.splitlines())


@pytest.mark.skipif(not shutil.which("desktop-file-validate"), reason="no desktop-file-validate")
def test_the_menu_entry_is_as_desktops_want_it(unpacked: Path, person: dict[str, str]) -> None:
    assert run(unpacked / "install.sh", person).returncode == 0
    entry = Path(person["HOME"]) / ".local/share/applications/inglenook.desktop"
    checked = subprocess.run(["desktop-file-validate", str(entry)], capture_output=True, text=True)
    assert checked.returncode == 0 and not checked.stdout, checked.stdout


def test_no_file_leaves_anything_open(frozen: Path) -> None:
    given = linux_package.values(frozen, "0.1.0")
    for file in linux_package.HERE.iterdir():
        assert not re.search(r"@[A-Z]+@", linux_package.filled(file.name, given)), file.name
