"""PowerPoint: a page for each slide, in the order in which they are shown."""

from app.documents.document import Heading, PageFlag
from tests.app.documents.office_files import pptx, shape
from tests.app.documents.parsers.read import read


def test_a_slide_is_a_page_with_its_title_and_notes() -> None:
    data = pptx(
        [shape("Budget", "title") + shape("Rent\nHeating"), shape("Thanks", "title")],
        notes={1: "say it slowly"},
    )
    pages, facts = read(data, "a.pptx")
    assert [page.label for page in pages] == ["Slide 1", "Slide 2"]
    assert pages[0].text == "Budget\n\nRent\nHeating\n\nNotes: say it slowly"
    assert pages[0].headings == (Heading(start=0, path=("Budget",)),)
    assert (facts.kind, facts.num_pages) == ("pptx", 2)


def test_groups_and_tables_are_looked_into() -> None:
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    row = "<a:tr>" + cell * 3 + "</a:tr>"
    table = "<p:graphicFrame><a:tbl>" + row.format("A", "B", "C") + row.format(1, 2, 3)
    data = pptx([f"<p:grpSp>{shape('inner')}</p:grpSp>{table}</a:tbl></p:graphicFrame>"])
    pages, _ = read(data, "a.pptx")
    assert pages[0].text == "inner\n\nA: 1 | B: 2 | C: 3"


def test_hidden_slides_and_shapes_are_left_out_and_the_numbers_stay_right() -> None:
    hidden = "hidden" + shape("say BANANA")
    data = pptx([shape("One"), hidden, shape("Three") + shape("say BANANA", hidden=True)])
    pages, _ = read(data, "a.pptx")
    assert [(page.label, page.text) for page in pages] == [
        ("Slide 1", "One"),
        ("Slide 2", ""),
        ("Slide 3", "Three"),
    ]
    assert [PageFlag.HIDDEN_LEFT_OUT in page.flags for page in pages] == [False, True, True]


def test_what_powerpoint_puts_on_every_slide_is_no_text() -> None:
    pages, _ = read(pptx([shape("One") + shape("17", "sldNum") + shape("2026", "dt")]), "a.pptx")
    assert pages[0].text == "One"
