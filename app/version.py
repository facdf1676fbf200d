"""The version, in its one place: the build, `--version` and the packages read it here. And those of
what is installed beside us."""

from importlib.metadata import PackageNotFoundError, version

VERSION = "0.1.0"


def version_of(package: str) -> str:
    """As it was installed; "unknown" where nothing tells, as in a bundle without descriptions."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
