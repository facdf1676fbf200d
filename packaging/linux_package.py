"""The frozen folder as Linux wants it: an archive with an installer for one user, and a .deb."""

import gzip
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

from engine_wheel import BuildError

HERE = Path(__file__).resolve().parent / "linux"
ROOT = HERE.parent.parent
ICON = ROOT / "app" / "ui" / "static" / "icon.svg"
DOCUMENTS = ("LICENSE", "NOTICE", "THIRD-PARTY-NOTICES.txt", "inglenook.cdx.json")
SYSTEM = "x86_64"
COMPRESS = ("xz", "-T0", "-6", "-c")


def needed_glibc(folder: Path) -> str:
    """The newest version of the C library that anything in the folder was linked with."""
    versions = {
        tuple(map(int, found.split(b".")))
        for file in binaries(folder)
        for found in re.findall(rb"\0GLIBC_(2\.\d+)(?=\0|\.)", file.read_bytes())
    }
    if not versions:
        raise BuildError(f"Nothing in {folder} is linked with glibc, so this is no Linux program.")
    return ".".join(map(str, max(versions)))


def binaries(folder: Path) -> list[Path]:
    found = []
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as content:
                if content.read(4) == b"\x7fELF":
                    found.append(file)
    return found


def values(frozen: Path, version: str) -> Mapping[str, str]:
    """What the files of packaging/linux leave open."""
    num_bytes = sum(file.lstat().st_size for file in frozen.rglob("*") if not file.is_dir())
    return {
        "VERSION": version,
        "GLIBC": needed_glibc(frozen),
        "KILOBYTES": str(-(-num_bytes // 1024)),
        "MEGABYTES": str(-(-num_bytes // 10**6)),
        "EXEC": "/usr/bin/inglenook",
    }


def filled(name: str, with_values: Mapping[str, str]) -> str:
    """A file of packaging/linux; one that leaves something else open is no package's."""
    text = (HERE / name).read_text(encoding="utf-8")
    text = re.sub(r"@([A-Z]+)@", lambda found: with_values[found[1]], text)
    return text


def make_archive(frozen: Path, version: str, into: Path, work: Path) -> Path:
    """inglenook-VERSION-linux-x86_64.tar.xz, with one folder of the same name."""
    name = f"inglenook-{version}-linux-{SYSTEM}"
    folder = _fresh(work / name)
    _copy(frozen, folder / "inglenook")
    given = values(frozen, version)
    for script in ("install.sh", "uninstall.sh"):
        _write(folder / script, filled(script, given), 0o755)
    _write(folder / "README.txt", filled("README.txt", given))
    _write(folder / "inglenook.desktop", filled("inglenook.desktop", given))
    shutil.copyfile(ICON, folder / "inglenook.svg")
    for document in DOCUMENTS:
        shutil.copyfile(frozen / document, folder / document)
    archive = into / f"{name}.tar.xz"
    with archive.open("wb") as output:
        packed = subprocess.Popen(COMPRESS, stdin=subprocess.PIPE, stdout=output)
        assert packed.stdin is not None
        with packed.stdin, tarfile.open(fileobj=packed.stdin, mode="w|") as archived:
            archived.add(folder, name, filter=_of_nobody)
    if packed.wait():
        raise BuildError(f"xz could not write {archive}: see whether the disk is full.")
    shutil.rmtree(folder)
    return archive


def make_deb(frozen: Path, version: str, into: Path, work: Path) -> Path:
    """inglenook_VERSION_amd64.deb: the program in /usr/lib/inglenook, a command, a menu entry."""
    if shutil.which("dpkg-deb") is None:
        raise BuildError("A .deb is made by dpkg-deb: install dpkg, or use the archive.")
    folder = _fresh(work / "deb")
    given = values(frozen, version)
    _copy(frozen, folder / "usr/lib/inglenook")
    for place in ("usr/bin", "usr/share/applications", "usr/share/icons/hicolor/scalable/apps"):
        (folder / place).mkdir(parents=True)
    (folder / "usr/bin/inglenook").symlink_to("../lib/inglenook/inglenook")
    _write(folder / "usr/share/applications/inglenook.desktop", filled("inglenook.desktop", given))
    icon = folder / "usr/share/icons/hicolor/scalable/apps/inglenook.svg"
    _write(icon, ICON.read_text(encoding="utf-8"))
    documents = folder / "usr/share/doc/inglenook"
    documents.mkdir(parents=True)
    _write(documents / "copyright", (frozen / "THIRD-PARTY-NOTICES.txt").read_text("utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_bytes()
    (documents / "changelog.gz").write_bytes(gzip.compress(changes, mtime=0))
    (folder / "DEBIAN").mkdir()
    _write(folder / "DEBIAN/control", filled("control", given))
    for each in (folder, *folder.rglob("*")):
        if each.is_dir():
            each.chmod(0o755)
    package = into / f"inglenook_{version}_amd64.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(folder), str(package)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        raise BuildError(f"dpkg-deb made no package: {made.stderr.strip()}")
    shutil.rmtree(folder)
    return package


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _copy(frozen: Path, to: Path) -> None:
    """Links to the same content where the disk allows it: half a gigabyte is not copied twice."""
    try:
        shutil.copytree(frozen, to, symlinks=True, copy_function=os.link)
    except (OSError, shutil.Error):
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(frozen, to, symlinks=True)


def _write(file: Path, text: str, mode: int = 0o644) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Who made the archive is no business of those who unpack it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
