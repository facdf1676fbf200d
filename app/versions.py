"""The versions of what is installed, also where a bundle has no descriptions of packages."""

from importlib.metadata import PackageNotFoundError, version


def version_of(package: str) -> str:
    """As it was installed; "unknown" where nothing tells."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
