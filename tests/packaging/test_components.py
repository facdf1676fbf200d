"""The parts of a package: each has a licence that may be in it, and its text."""

import importlib.metadata

import bundle
import pytest
from components import Component, check_licences, distribution_component, licence_of
from engine_wheel import BuildError


def part(licence: str) -> Component:
    return Component(
        name="a-part", version="1", licence=licence, purl="pkg:pypi/a-part@1", role="Python library"
    )


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "AGPL-3.0-or-later", "MIT AND GPL-2.0-only", "GPL v3"]
)
def test_what_would_bind_the_whole_package_is_refused(licence: str) -> None:
    with pytest.raises(BuildError, match="a-part is under"):
        check_licences([part("MIT"), part(licence)])


@pytest.mark.parametrize(
    "licence",
    ["MIT", "LGPL-2.1-or-later", "MPL-2.0", "GPL-3.0-or-later WITH GCC-exception-3.1"],
)
def test_what_may_be_carried_is_not(licence: str) -> None:
    check_licences([part(licence)])


def test_a_part_without_a_licence_is_refused() -> None:
    with pytest.raises(BuildError, match="names no licence"):
        check_licences([part("")])


@pytest.mark.parametrize("name", sorted(bundle.shipped()))
def test_everything_shipped_has_a_licence_that_may_be_in_a_package_and_its_text(name: str) -> None:
    found = distribution_component(bundle.shipped()[name])
    check_licences([found])
    assert found.texts
    assert all(len(text) > 100 for _, text in found.texts)


def test_the_licences_of_what_a_library_has_taken_in_come_along() -> None:
    texts = dict(distribution_component(bundle.shipped()["pypdfium2"]).texts)
    assert {"pdfium.txt", "freetype.txt", "libtiff.txt"} <= set(texts)
    assert "Apache License" in texts["abseil.txt"]


def test_the_tool_that_freezes_is_not_shipped_and_would_be_refused() -> None:
    """Only its bootloader is, under the exception that its makers give for it."""
    tool = importlib.metadata.distribution("pyinstaller")
    with pytest.raises(BuildError, match="pyinstaller is under"):
        check_licences([distribution_component(tool)])
    assert "GPL" in licence_of(tool)
    assert "pyinstaller" not in bundle.shipped()
