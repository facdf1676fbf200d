"""The roofline as a picture: its axes, its marks and its words."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from app.machine.roofline_picture import HEIGHT, WIDTH, describe, draw, operations
from tests.fakes_machine import some_roofline

SVG = "{http://www.w3.org/2000/svg}"


def test_the_axes_are_named_and_the_figures_stand_in_words() -> None:
    picture = ET.fromstring(draw(some_roofline()).as_svg())
    words = [each.text or "" for each in picture.iter(f"{SVG}text")]
    assert "Operations per byte of weights" in words and "Operations per second" in words
    description = picture.find(f"{SVG}desc")
    assert description is not None and description.text == describe(some_roofline())


def test_the_words_have_every_figure() -> None:
    words = describe(some_roofline())
    assert "Memory is read at 20.0 GB/s, and 100.0 billion operations/s are possible" in words
    assert "Writing: 3.2 operations per byte" in words and "62 tokens/s" in words
    assert "Reading:" in words and "200 tokens/s" in words


def test_everything_lies_within_the_picture() -> None:
    picture = ET.fromstring(draw(some_roofline()).as_svg())
    for circle in picture.iter(f"{SVG}circle"):
        assert 0 < float(circle.attrib["cx"]) < WIDTH
        assert 0 < float(circle.attrib["cy"]) < HEIGHT
    for line in picture.iter(f"{SVG}polyline"):
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= WIDTH and 0 <= y <= HEIGHT


def test_what_was_measured_lies_below_what_is_possible() -> None:
    picture = ET.fromstring(draw(some_roofline()).as_svg())
    marks = [(each.attrib["cx"], float(each.attrib["cy"])) for each in picture.iter(f"{SVG}circle")]
    (_, possible), (_, measured) = marks[2:4]
    assert marks[2][0] == marks[3][0] and measured > possible


@pytest.mark.parametrize("ratio", [0.5, 0.9, 1.0, 1.1, 2.0])
def test_the_words_of_two_phases_do_not_lie_over_each_other(ratio: float) -> None:
    roofline = some_roofline()
    first, second = roofline.phases
    near = replace(second, operations_per_s=first.operations_per_s * ratio)
    picture = ET.fromstring(draw(replace(roofline, phases=(first, near))).as_svg())
    texts = [each for each in picture.iter(f"{SVG}text") if "tokens/s" in (each.text or "")]
    one, other = (float(each.attrib["y"]) for each in texts)
    assert abs(one - other) > 32


def test_operations_are_told_in_words() -> None:
    assert operations(2.5e12) == "2.5 trillion operations/s"
    assert operations(2.5e9) == "2.5 billion operations/s"
    assert operations(12) == "12 operations/s"
