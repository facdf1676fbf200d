"""The versions of what is installed."""

from importlib.metadata import version

from app.version import version_of


def test_what_is_installed_has_a_version_and_what_is_not_is_no_fault() -> None:
    assert version_of("llama-cpp-python") == version("llama-cpp-python")
    assert version_of("there-is-no-such-package") == "unknown"
