"""What a package is made of: each part with its version, its licence, and the texts of it."""

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

import bundle
from engine_wheel import BuildError, EngineWheel
from freeze import Frozen

LICENCE_FILE = re.compile(r"licen[cs]e|copying|notice|authors", re.IGNORECASE)
COPYLEFT = re.compile(r"\bA?GPL|(?<!Lesser )\bGeneral Public", re.IGNORECASE)
APACHE = bundle.ROOT / "LICENSE"

# The system's libraries that Python and the engine are linked with, by Debian's names. One that is
# not here stops the build: somebody has to read its licence first.
SYSTEM_LICENCES: Mapping[str, str] = {
    "libbz2": "bzip2-1.0.6",
    "libcrypt": "LGPL-2.1-or-later",
    "libexpat": "MIT",
    "libffi": "MIT",
    "libgcc-s": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libgomp": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "liblzma": "0BSD",
    "libncursesw": "X11-distribute-modifications-variant",
    "libsqlite": "blessing",
    "libssl": "Apache-2.0",
    "libstdc++": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libtinfo": "X11-distribute-modifications-variant",
    "libuuid": "BSD-3-Clause",
    "zlib": "Zlib",
}
# llama.cpp and what it has taken in, by the names of its folders. One that is not here stops the
# build as well.
ENGINE_LICENCES: Mapping[str, str] = {
    "hash-rotate-bits": "MIT",
    "hash-sha1": "LicenseRef-Public-Domain",
    "hash-sha256": "LicenseRef-Public-Domain",
    "hash-xxhash": "BSD-2-Clause",
    "llama.cpp": "MIT",
    "miniaudio": "Unlicense OR MIT-0",
    "nlohmann": "MIT",
    "sheredom": "Unlicense",
    "stb": "MIT OR Unlicense",
}
# Classifiers are the older way to name a licence.
CLASSIFIED: Mapping[str, str] = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Public Domain": "LicenseRef-Public-Domain",
}
# And a word of their own is the oldest.
NAMED: Mapping[str, str] = {
    "MIT License": "MIT",
    "Apache License, Version 2.0": "Apache-2.0",
    # pypdfium2, with PDFium and what that has taken in; none of it is under the GPL.
    "BSD-3-Clause, Apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One part. `licence` is an SPDX expression; `texts` are its licence files, with their names.

    `purl` is the package URL that lists of faults use, `role` what the part is for.
    """

    name: str
    version: str
    licence: str
    purl: str
    role: str
    texts: tuple[tuple[str, str], ...] = ()


def components(frozen: Frozen, engine: EngineWheel | None) -> list[Component]:
    """Every part of the frozen program. Raises BuildError for one that may not be in it."""
    found = [*_distributions(frozen), _python(), _bootloader(), _model(), _embedding_model()]
    if engine is not None:
        found += _engine_parts(engine)
    if sys.platform == "linux":
        found += _system_libraries(frozen)
    check_licences(found)
    return sorted(found, key=lambda component: (component.role, component.name.lower()))


def check_licences(found: Iterable[Component]) -> None:
    """Nothing under the GPL or AGPL, but where an exception lets any program carry it."""
    for component in found:
        if not component.licence:
            raise BuildError(f"{component.name} names no licence: look it up before it is shipped.")
        if COPYLEFT.search(component.licence) and " WITH " not in component.licence:
            raise BuildError(
                f"{component.name} is under {component.licence}, which would bind the whole"
                " package: leave it out."
            )


def _distributions(frozen: Frozen) -> list[Component]:
    """The Python distributions that something in the program came from; only shipped ones may."""
    owner_of = {
        str(Path(str(distribution.locate_file(file)))): distribution
        for distribution in importlib.metadata.distributions(path=frozen.search_path())
        for file in distribution.files or ()
    }
    used = {
        bundle.normal(owner_of[source].name) for _, source in frozen.parts if source in owner_of
    }
    allowed = set(bundle.shipped())
    # Its hooks and the loader of the frozen modules run inside the program.
    strangers = used - allowed - {"inglenook", "pyinstaller", "pyinstaller-hooks-contrib"}
    if strangers:
        raise BuildError(f"{', '.join(sorted(strangers))} came along and nothing needs it.")
    return [distribution_component(bundle.shipped()[name]) for name in sorted(used & allowed)]


def distribution_component(distribution: Distribution) -> Component:
    texts = [
        (file.name, licence_text(Path(str(distribution.locate_file(file)))))
        for file in distribution.files or ()
        if ".dist-info" in file.parts[0]
        if LICENCE_FILE.search(file.name) or "licenses" in file.parts[1:-1]
    ]
    licence = licence_of(distribution)
    if not texts and licence == "Apache-2.0":
        texts = [(APACHE.name, APACHE.read_text(encoding="utf-8"))]
    name = bundle.normal(distribution.name)
    return Component(
        name=distribution.name,
        version=distribution.version,
        licence=licence,
        purl=f"pkg:pypi/{name}@{distribution.version}",
        role="Python library",
        texts=tuple(texts),
    )


def licence_text(file: Path) -> str:
    """Its text, or that of the file beside it that it only names."""
    text = read(file)
    return read(file.parent / text.split()[1]) if text.startswith("#include ") else text


def read(file: Path) -> str:
    """A text whose makers may have used any encoding."""
    return file.read_text(encoding="utf-8", errors="replace")


def licence_of(distribution: Distribution) -> str:
    """As an SPDX expression where it is given as one, or else as its classifier says."""
    metadata = distribution.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    classifiers = [
        CLASSIFIED.get(text.rpartition(" :: ")[2], text.rpartition(" :: ")[2])
        for text in metadata.get_all("Classifier") or ()
        if text.startswith("License ::") and not text.endswith("OSI Approved")
    ]
    if classifiers:
        return " AND ".join(classifiers)
    named = metadata["License"].strip() if "License" in metadata else ""
    return NAMED.get(named, named)


def _python() -> Component:
    version = ".".join(map(str, sys.version_info[:3]))
    places = [Path(sysconfig.get_path("stdlib")) / "LICENSE.txt", Path(sys.base_prefix) / "LICENSE"]
    places += [Path(f"/usr/share/doc/python{version.rpartition('.')[0]}/copyright")]
    text = next((place for place in places if place.is_file()), None)
    if text is None:
        raise BuildError(f"Python's licence lies in none of {', '.join(map(str, places))}.")
    return Component(
        name="CPython",
        version=version,
        licence="PSF-2.0",
        purl=f"pkg:generic/cpython@{version}",
        role="interpreter",
        texts=((text.name, read(text)),),
    )


def _bootloader() -> Component:
    """The first lines of the program itself, which PyInstaller allows to be of any licence."""
    distribution = importlib.metadata.distribution("pyinstaller")
    found = distribution_component(distribution)
    return Component(
        name="PyInstaller bootloader",
        version=found.version,
        licence="GPL-2.0-or-later WITH Bootloader-exception",
        purl=found.purl,
        role="bootloader",
        texts=found.texts,
    )


def _model() -> Component:
    from app.models.starter import starter_model

    file = starter_model()
    if file is None:
        raise BuildError("The starter model is not installed: run `make install`.")
    (name,) = bundle.starters()
    return Component(
        name=file.stem,
        version=bundle.shipped()[name].version,
        licence="Apache-2.0",
        purl="pkg:huggingface/HuggingFaceTB/SmolLM2-135M-Instruct",
        role="model",
        texts=((APACHE.name, APACHE.read_text(encoding="utf-8")),),
    )


def _embedding_model() -> Component:
    from app.documents.embedding import minilm

    if minilm.package_folder() is None:
        raise BuildError("The embedding model is not installed: run `make install`.")
    return Component(
        name=minilm.NAME,
        version=importlib.metadata.version(minilm.PACKAGE),
        licence="Apache-2.0",
        purl=f"pkg:huggingface/sentence-transformers/{minilm.NAME}",
        role="model",
        texts=((APACHE.name, APACHE.read_text(encoding="utf-8")),),
    )


def _engine_parts(engine: EngineWheel) -> list[Component]:
    version = engine.wheel.name.split("-")[1]
    return [
        Component(
            name=file.stem,
            version=f"in llama-cpp-python {version}",
            licence=ENGINE_LICENCES.get(file.stem, ""),
            purl=f"pkg:generic/{file.stem}?vendored_in=llama-cpp-python%40{version}",
            role="engine",
            texts=((file.name, read(file)),),
        )
        for file in sorted(engine.licences.glob("*.txt"))
    ]


def _system_libraries(frozen: Frozen) -> list[Component]:
    """Libraries of the machine that the package was made on, by the packages that own them."""
    ours = (sys.prefix, sys.base_prefix, str(bundle.ROOT))
    files = {
        str(Path(source).resolve())
        for name, source in frozen.parts
        if bundle.LIBRARY.search(name) and Path(source).is_absolute()
        if not source.startswith(ours) and "site-packages" not in Path(source).parts
    }
    packages = {package_of(file) for file in files}
    return [_system_component(package) for package in sorted(packages)]


def package_of(file: str) -> str:
    # Debian's records may have the name without /usr, where both are the same folder.
    for name in (file, file.removeprefix("/usr")):
        asked = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if asked.returncode == 0:
            return asked.stdout.partition(":")[0]
    raise BuildError(f"No package owns {file}, so its licence is not known: leave it out.")


def _system_component(package: str) -> Component:
    family = next((name for name in SYSTEM_LICENCES if package.startswith(name)), None)
    if family is None:
        raise BuildError(
            f"The system's {package} came along: read its licence, and name it in"
            " packaging/components.py or leave the library out."
        )
    asked = subprocess.run(
        ["dpkg-query", "-W", "-f=${Version}\n", package], capture_output=True, text=True, check=True
    )
    version = asked.stdout.split("\n")[0]
    text = Path("/usr/share/doc") / package / "copyright"
    return Component(
        name=package,
        version=version,
        licence=SYSTEM_LICENCES[family],
        purl=f"pkg:deb/debian/{package}@{version}",
        role="system library",
        texts=((text.name, read(text)),),
    )
