"""What belongs into the frozen program, found by rule in what is installed; the spec asks here.

shipped   the project's dependencies, theirs, and the starter model
code      what PyInstaller finds by following imports, and every module of our own
data      whatever a shipped distribution has installed that is no code
excluded  every module that belongs to nothing shipped: tests, build tools, an installed torch
"""

import importlib.metadata
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath

from app.version import VERSION
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
OUR_PACKAGES = ("app", "engine", "grammars", "kernels")
ENGINE = "llama-cpp-python"
LIBRARY = re.compile(r"\.(so(\.\d+)*|dll|dylib|pyd)$")

# What is read by compilers, type checkers and debuggers, and never by the program.
FOR_DEVELOPERS = re.compile(
    r"\.(py[cio]?|pyi|pyx|pxd|pxi|pyf|src|c|cc|cpp|h|hpp|f|f90|a|lib|cmake|pc|map)$|^py\.typed$"
)
# Large folders that only tests, servers of other kinds or makers of components need.
UNUSED = (
    "gradio/_frontend_code/",
    "gradio/media_assets/",
    "gradio/templates/node/",
    "gradio/test_data/",
    "llama_cpp/include/",
)
# Of the standard library: windows of another kind, and what is linked with readline, gdbm or
# Berkeley DB, whose licences would bind the whole package.
STANDARD_EXCLUDED = (
    *("tkinter", "_tkinter", "idlelib", "turtle", "test", "lib2to3", "ensurepip"),
    *("readline", "rlcompleter", "_gdbm", "_dbm", "dbm.gnu", "dbm.ndbm"),
)

# Declared by sqlite-utils for a command of its own that installs more of it.
INSTALLERS = {"pip"}

DataFile = tuple[str, str]
"""A file, and the folder of the bundle that it goes into."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def project() -> dict[str, object]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def shipped() -> Mapping[str, Distribution]:
    """Every distribution whose parts users get, by its normal name.

    Raises PackageNotFoundError when one of them is not installed.
    """
    declared = project()
    assert isinstance(table := declared["project"], dict)
    assert isinstance(groups := declared["dependency-groups"], dict)
    found: dict[str, Distribution] = {}
    waiting = [Requirement(text) for text in table["dependencies"]]
    while waiting:
        requirement = waiting.pop()
        name = normal(requirement.name)
        if name in INSTALLERS or name in found or not _applies(requirement, ()):
            continue
        distribution = importlib.metadata.distribution(requirement.name)
        found[name] = distribution
        for text in distribution.requires or ():
            following = Requirement(text)
            if _applies(following, requirement.extras):
                waiting.append(following)
    # Only the file that it carries: its own dependency is another program.
    for text in groups["starter"]:
        name = Requirement(text).name
        found[normal(name)] = importlib.metadata.distribution(name)
    return found


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def starters() -> set[str]:
    declared = project()["dependency-groups"]
    assert isinstance(declared, dict)
    return {normal(Requirement(text).name) for text in declared["starter"]}


def excluded_modules() -> list[str]:
    """Top-level modules that no shipped distribution has, whatever imports them if it can."""
    ours = {"inglenook", *shipped()}
    strangers = [
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if not {normal(owner) for owner in owners} & ours
    ]
    return sorted({*strangers, *STANDARD_EXCLUDED})


def our_modules() -> list[str]:
    """Every module of ours: some are imported by a name that is only known while running."""
    return sorted(
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in OUR_PACKAGES
        for file in (ROOT / package).rglob("*.py")
    )


def our_data() -> list[DataFile]:
    files = (file for package in OUR_PACKAGES for file in sorted((ROOT / package).rglob("*")))
    return [
        (str(file), file.parent.relative_to(ROOT).as_posix())
        for file in files
        if file.is_file() and file.suffix != ".py" and "__pycache__" not in file.parts
    ]


def their_data() -> list[DataFile]:
    """The data of every shipped distribution; of the starter's also the module beside it."""
    return [
        (str(distribution.locate_file(file)), PurePosixPath(file).parent.as_posix())
        for name, distribution in shipped().items()
        for file in installed_files(distribution)
        if is_data(file) or name in starters() and file.suffix == ".py"
    ]


def embedding_model(into: Path) -> list[DataFile]:
    """The English one, as it is computed with: the weights that were installed are 83 MB, these 25.

    Nothing where its package is not installed; `components` refuses such a program.
    """
    from app.documents.embedding import minilm, model_files

    folder = minilm.package_folder()
    if folder is None:
        return []
    into.mkdir(parents=True, exist_ok=True)
    file = into / model_files.BROUGHT.name
    minilm.convert(folder, file)
    return [(str(file), model_files.BROUGHT.parent.relative_to(ROOT).as_posix())]


def installed_files(distribution: Distribution) -> Iterator[PurePosixPath]:
    """What lies in its packages: no commands, no facts about the installation."""
    for file in distribution.files or ():
        if ".." in file.parts or file.parts[0].endswith((".dist-info", ".egg-info")):
            continue
        yield PurePosixPath(file)


def is_data(file: PurePosixPath) -> bool:
    is_code = FOR_DEVELOPERS.search(file.name) or LIBRARY.search(file.name)
    return not (is_code or "tests" in file.parts or file.as_posix().startswith(UNUSED))


def engine_libraries() -> list[DataFile]:
    """llama.cpp's libraries: they are opened by name while running, so no analysis finds them."""
    engine = shipped()[ENGINE]
    return [
        (str(engine.locate_file(file)), file.parent.as_posix())
        for file in installed_files(engine)
        if LIBRARY.search(file.name)
    ]


def metadata_files(into: Path) -> list[DataFile]:
    """For each distribution what `importlib.metadata` is asked for: its name and its version, and
    for the app its addresses, too.

    The heads alone, written below `into`: the rest tells of the installation and its sources.
    """
    made: list[DataFile] = []
    for name, distribution in shipped().items():
        folder = f"{name.replace('-', '_')}-{distribution.version}.dist-info"
        lines = [f"{key}: {distribution.metadata[key]}" for key in ("Metadata-Version", "Name")]
        lines.append(f"Version: {distribution.version}")
        made.append((_metadata_file(into / folder, lines), folder))
    folder = f"inglenook-{VERSION}.dist-info"
    made.append((_metadata_file(into / folder, own_metadata()), folder))
    return made


def own_metadata() -> list[str]:
    """Of the app, from the tree: what is installed may be of another day."""
    declared = project()["project"]
    assert isinstance(declared, dict)
    addresses = [f"Project-URL: {name}, {url}" for name, url in declared.get("urls", {}).items()]
    return ["Metadata-Version: 2.4", "Name: inglenook", f"Version: {VERSION}", *addresses]


def _metadata_file(folder: Path, lines: list[str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(folder / "METADATA")
