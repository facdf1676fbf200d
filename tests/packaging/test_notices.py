"""The licences of the parts: all of them, and none twice."""

from components import Component
from notices import notices


def part(name: str, *texts: str) -> Component:
    return Component(
        name=name,
        version="1",
        licence="MIT",
        purl=f"pkg:pypi/{name}@1",
        role="Python library",
        texts=tuple(("LICENSE", text) for text in texts),
    )


def test_every_part_is_named_with_its_licence_and_text() -> None:
    text = notices([part("one", "Copyright A"), part("two", "Copyright B")])
    assert "one 1: MIT" in text and "two 1: MIT" in text
    assert "Copyright A" in text and "Copyright B" in text


def test_a_text_that_several_have_stands_there_once() -> None:
    text = notices([part("one", "Copyright A"), part("two", "Copyright A\n")])
    assert text.count("Copyright A") == 1
    assert "the same text as for one, above" in text


def test_the_exceptions_of_the_bootloader_and_of_gcc_are_explained() -> None:
    assert "bootloader" in notices([]) and "GCC Runtime Library Exception" in notices([])
