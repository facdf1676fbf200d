"""Size and loss of each form as a picture."""

import xml.etree.ElementTree as ET

from app.eval.quant_picture import HEIGHT, WIDTH, Mark, describe, draw

SVG = "{http://www.w3.org/2000/svg}"
MARKS = [
    Mark(name="Q8_0", bits=8.5, divergence=0.0005),
    Mark(name="Q2_K", bits=3.2, divergence=0.9),
    Mark(name="KV q4_0", bits=16.0, divergence=0.02, is_kv=True),
    Mark(name="the same", bits=16.0, divergence=0.0),
]


def test_every_form_has_a_mark_with_its_name_within_the_picture() -> None:
    picture = ET.fromstring(draw(MARKS, "a model").as_svg())
    words = {each.text for each in picture.iter(f"{SVG}text")}
    assert {mark.name for mark in MARKS} <= words
    assert {"Bits a weight in the file", "Divergence, nats a token"} <= words
    for circle in picture.iter(f"{SVG}circle"):
        assert 0 < float(circle.attrib["cx"]) < WIDTH and 0 < float(circle.attrib["cy"]) < HEIGHT


def test_the_figures_stand_in_words() -> None:
    assert "Q8_0: 8.50 bits a weight, 0.0005 nats a token" in describe(MARKS)


def test_nothing_to_draw_is_a_picture_all_the_same() -> None:
    assert draw([], "a model").as_svg().startswith("<svg")
