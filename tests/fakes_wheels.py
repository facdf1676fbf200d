"""Tiny wheels: real files for a real pip, with a few lines in them."""

import base64
import hashlib
import sysconfig
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
TORCH = "2.99.0"


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str],
    requires: Sequence[str] = (),
    extras: Sequence[str] = (),
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    head = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    head += [f"Provides-Extra: {extra}" for extra in extras]
    head += [f"Requires-Dist: {line}" for line in requires]
    contents = {
        **files,
        f"{info}/METADATA": "\n".join([*head, ""]),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [
        f"{place},sha256={_digest(text)},{len(text.encode())}" for place, text in contents.items()
    ]
    contents[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for place, text in contents.items():
            file.writestr(place, text)
    return wheel


def make_torch(folder: Path, version: str = TORCH, code: str | None = None) -> Path:
    """One that can be imported, or whatever `code` does."""
    text = f"__version__ = {version!r}\n" if code is None else code
    return make_wheel(folder, "torch", version, {"torch/__init__.py": text})


def make_own(folder: Path, version: str = VERSION) -> Path:
    """Inglenook as a wheel whose modules and libraries are those of the tests."""
    places = [str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return make_wheel(
        folder,
        "inglenook",
        version,
        {"inglenook_of_tests.pth": "\n".join([*dict.fromkeys(places), ""])},
        requires=['torch>=2 ; extra == "cuda"'],
        extras=["cuda"],
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
