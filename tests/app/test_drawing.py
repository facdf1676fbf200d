"""Pictures as SVG: whole documents, in both colours, with their words."""

import xml.etree.ElementTree as ET

from app.drawing import DARK, LIGHT, Drawing, Theme


def drawn() -> Drawing:
    drawing = Drawing(100, 50, "A <title>", 'More & "less"')
    drawing.line([(0, 0), (10, 5)], "first", dashes="3 3")
    drawing.rectangle((1, 2), 3, 4, "second")
    drawing.circle((5, 5), 2, "third", is_hollow=True)
    drawing.text((1, 1), "a < b & c", angle=-90)
    return drawing


def test_a_picture_is_a_document_that_says_what_it_shows() -> None:
    root = ET.fromstring(drawn().as_svg())
    found = {each.tag.rpartition("}")[2]: each.text for each in root}
    assert found["title"] == "A <title>" and found["desc"] == 'More & "less"'
    assert found["text"] == "a < b & c"
    assert root.attrib["role"] == "img" and root.attrib["aria-labelledby"] == "t d"


def test_each_theme_has_its_colours_and_the_system_may_choose() -> None:
    light, dark, either = (drawn().as_svg(theme) for theme in Theme)
    assert LIGHT["first"] in light and DARK["first"] not in light
    assert DARK["first"] in dark and LIGHT["first"] not in dark
    before, _, after = either.partition("prefers-color-scheme")
    assert LIGHT["first"] in before and DARK["first"] in after


def test_both_themes_know_the_same_colours() -> None:
    assert LIGHT.keys() == DARK.keys()
