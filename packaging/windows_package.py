"""The frozen folder as Windows wants it: an installer for one user, and an archive to carry about.

Signed when INGLENOOK_SIGNTOOL holds the command that signs, with $f for the file:

    signtool sign /sha1 THUMBPRINT /fd sha256 /tr TIMESTAMP-SERVER /td sha256 $f

Unsigned programs are reported by SmartScreen at their first start.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from engine_wheel import BuildError

SCRIPT = Path(__file__).resolve().parent / "windows" / "inglenook.iss"
SIGN = "INGLENOOK_SIGNTOOL"
COMPILERS = ("Inno Setup 6/ISCC.exe", "Inno Setup 7/ISCC.exe")


def make_archive(frozen: Path, version: str, into: Path, work: Path) -> Path:
    """inglenook-VERSION-windows-x86_64.zip: unpacked anywhere, inglenook.exe starts it."""
    sign(frozen / "inglenook.exe")
    name = f"inglenook-{version}-windows-x86_64"
    packed = shutil.make_archive(str(into / name), "zip", frozen.parent, frozen.name)
    return Path(packed)


def make_setup(frozen: Path, version: str, into: Path, work: Path) -> Path:
    compiler = find_compiler()
    if compiler is None:
        raise BuildError(
            "The installer is made by Inno Setup: install it with 'winget install"
            " JRSoftware.InnoSetup', then run this again."
        )
    compiled = subprocess.run(
        setup_command(compiler, frozen, version, into, os.environ.get(SIGN, "")),
        capture_output=True,
        text=True,
    )
    if compiled.returncode:
        raise BuildError(f"Inno Setup made no installer: {compiled.stderr.strip()}")
    return into / f"inglenook-{version}-windows-x86_64-setup.exe"


def setup_command(
    compiler: str, frozen: Path, version: str, into: Path, sign_command: str
) -> Sequence[str]:
    signing = [f"/Ssign={sign_command}", "/DSigned"] if sign_command else []
    given = [f"/DVersion={version}", f"/DFrozen={frozen}", f"/DOutput={into}"]
    return [compiler, "/Qp", *given, *signing, str(SCRIPT)]


def find_compiler() -> str | None:
    for folder in ("PROGRAMFILES(X86)", "PROGRAMFILES", "LOCALAPPDATA"):
        for name in COMPILERS:
            for place in (name, f"Programs/{name}"):
                compiler = Path(os.environ.get(folder, ""), place)
                if folder in os.environ and compiler.is_file():
                    return str(compiler)
    return shutil.which("iscc")


def sign(program: Path) -> bool:
    """False: no certificate was given, and the program stays as it is."""
    command = os.environ.get(SIGN, "")
    if not command:
        return False
    signed = subprocess.run(command.replace("$f", f'"{program}"'), capture_output=True, text=True)
    if signed.returncode:
        raise BuildError(f"{program.name} was not signed: {signed.stderr.strip()}")
    return True
