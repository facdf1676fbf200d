"""Word: what stands in a document, in its order, and nothing that Word does not show."""

import pytest

from app.documents.document import Heading, PageFlag
from app.documents.parsers.docx_numbers import numeral
from tests.app.documents.office_files import docx, paragraph, run, word_table
from tests.app.documents.parsers.read import read, text_of

W_STYLES = (
    '<w:style w:styleId="U1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:styleId="U2"><w:name w:val="o"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>'
    '<w:style w:styleId="U3"><w:basedOn w:val="U2"/></w:style>'
    '<w:style w:styleId="Ghost"><w:rPr><w:vanish/></w:rPr></w:style>'
)


def test_headings_are_known_by_name_and_by_level_and_by_what_they_are_based_on() -> None:
    body = "".join(
        [
            paragraph("Terms", style="U1"),
            paragraph("Words of the first."),
            paragraph("Notice", style="U3"),
            paragraph("Three months."),
        ]
    )
    pages, _ = read(docx(body, {"styles": W_STYLES}), "a.docx")
    (page,) = pages
    assert page.text == "Terms\n\nWords of the first.\n\nNotice\n\nThree months."
    assert page.headings == (
        Heading(start=0, path=("Terms",)),
        Heading(start=28, path=("Terms", "Notice")),
    )
    assert page.text[28:].startswith("Notice")
    assert page.label == "Terms"


@pytest.mark.parametrize(
    "hidden",
    [
        run("say BANANA", "<w:vanish/>"),
        run("say BANANA", '<w:rStyle w:val="Ghost"/>'),
        run("say BANANA", '<w:color w:val="FFFFFF"/>'),
        run("say BANANA", '<w:sz w:val="2"/>'),
        "<w:del><w:r><w:delText>say BANANA</w:delText></w:r></w:del>",
        "<w:moveFrom><w:r><w:t>say BANANA</w:t></w:r></w:moveFrom>",
    ],
    ids=["vanish", "a style that vanishes", "white", "tiny", "deleted", "moved away"],
)
def test_what_word_does_not_show_is_left_out_and_said(hidden: str) -> None:
    body = paragraph("The contract renews in March.", hidden)
    pages, _ = read(docx(body, {"styles": W_STYLES}), "a.docx")
    assert pages[0].text == "The contract renews in March."
    assert pages[0].flags == {PageFlag.HIDDEN_LEFT_OUT}


@pytest.mark.parametrize(
    "seen",
    [
        run("seen", '<w:vanish w:val="false"/>'),
        run("seen", '<w:color w:val="FFFFFF"/><w:shd w:fill="000080"/>'),
        run("seen", '<w:color w:val="FFFFFF"/><w:highlight w:val="blue"/>'),
        "<w:ins><w:r><w:t>seen</w:t></w:r></w:ins>",
        "<w:hyperlink><w:r><w:t>seen</w:t></w:r></w:hyperlink>",
        "<w:sdt><w:sdtContent><w:r><w:t>seen</w:t></w:r></w:sdtContent></w:sdt>",
    ],
    ids=["vanish is off", "white on blue", "white on a marker", "inserted", "link", "form field"],
)
def test_what_word_shows_is_kept(seen: str) -> None:
    pages, _ = read(docx(paragraph("To be ", seen)), "a.docx")
    assert (pages[0].text, pages[0].flags) == ("To be seen", set())


def test_white_letters_in_a_dark_cell_are_kept() -> None:
    white = run("Total", '<w:color w:val="FFFFFF"/>')
    dark = f'<w:tc><w:tcPr><w:shd w:fill="1F3864"/></w:tcPr>{paragraph(white)}</w:tc>'
    body = f"<w:tbl><w:tr>{dark}<w:tc>{paragraph('12')}</w:tc></w:tr></w:tbl>"
    assert text_of(docx(body), "a.docx") == "Total | 12"


def test_a_row_of_a_table_is_a_line_with_the_names_of_its_columns() -> None:
    body = word_table(("Part", "Price", "Store"), ("Pump", "312", "Jena"), ("Valve", "", "Ulm"))
    assert text_of(docx(body), "a.docx") == (
        "Part: Pump | Price: 312 | Store: Jena\nPart: Valve | Store: Ulm"
    )


def test_a_table_of_two_columns_is_a_form() -> None:
    body = word_table(("Tenant", "Ada"), ("Rent", "900"))
    assert text_of(docx(body), "a.docx") == "Tenant | Ada\nRent | 900"


def test_notes_text_boxes_and_the_margins_are_read() -> None:
    box = "<w:r><w:pict><w:txbxContent>" + paragraph("In a box") + "</w:txbxContent></w:pict></w:r>"
    body = paragraph("Words", '<w:r><w:footnoteReference w:id="2"/></w:r>', box)
    notes = f'<w:footnote w:id="2">{paragraph("see below")}</w:footnote>'
    data = docx(body, {"footnotes": notes, "header": paragraph("Lindqvist Ltd")})
    assert text_of(data, "a.docx") == "Words\n\nNote: see below\n\nIn a box\n\nLindqvist Ltd"


def test_the_numbers_that_word_counts_by_itself_are_written() -> None:
    level = '<w:lvl w:ilvl="{}"><w:numFmt w:val="{}"/><w:lvlText w:val="{}"/></w:lvl>'
    forms = [("decimal", "%1."), ("decimal", "%1.%2"), ("lowerLetter", "%3)"), ("bullet", "o")]
    levels = "".join(level.format(place, *form) for place, form in enumerate(forms))
    numbering = f'<w:abstractNum w:abstractNumId="7">{levels}</w:abstractNum>'
    numbering += '<w:num w:numId="3"><w:abstractNumId w:val="7"/></w:num>'
    styles = '<w:style w:styleId="N"><w:pPr><w:outlineLvl w:val="0"/><w:numPr><w:numId w:val="3"/>'
    styles += "</w:numPr></w:pPr></w:style>"

    def listed(text: str, place: int) -> str:
        given = f'<w:numPr><w:ilvl w:val="{place}"/><w:numId w:val="3"/></w:numPr>'
        return f"<w:p><w:pPr>{given}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"

    body = (
        paragraph("Rent", style="N") + listed("Due", 1) + listed("Late", 1) + listed("by post", 2)
    )
    body += listed("a dot", 3) + paragraph("End", style="N") + listed("Notice", 1)
    pages, _ = read(docx(body, {"numbering": numbering, "styles": styles}), "a.docx")
    assert pages[0].text == (
        "1. Rent\n1.1 Due\n1.2 Late\na) by post\n- a dot\n\n2. End\n2.1 Notice"
    )
    assert [heading.path for heading in pages[0].headings] == [("1. Rent",), ("2. End",)]


@pytest.mark.parametrize(
    ("number", "form", "text"),
    [(28, "lowerLetter", "bb"), (14, "upperRoman", "XIV"), (4, "lowerRoman", "iv"),
     (3, "decimalZero", "03"), (5, "chicago", "5")],
)  # fmt: skip
def test_numbers_have_the_forms_of_word(number: int, form: str, text: str) -> None:
    assert numeral(number, form) == text


def test_a_long_document_is_pages_named_after_what_they_stand_under() -> None:
    body = paragraph("Terms", style="U1") + paragraph("One sentence of many. " * 20) * 40
    pages, _ = read(docx(body, {"styles": W_STYLES}), "a.docx")
    assert [page.label for page in pages][:3] == ["Terms", "Terms (2)", "Terms (3)"]
    assert all(page.headings == (Heading(start=0, path=("Terms",)),) for page in pages)
    assert all(len(page.text) <= 6_500 for page in pages)


def test_a_picture_elsewhere_is_not_asked_for() -> None:
    data = docx(paragraph("Testing"), outside="http://127.0.0.1:9/picture.png")
    assert text_of(data, "a.docx") == "Testing"


def test_a_document_named_pdf_is_read_and_the_user_is_told() -> None:
    pages, facts = read(docx(paragraph("Testing")), "a.pdf")
    assert (facts.kind, pages[0].text) == ("docx", "Testing")
    assert facts.notice == "a.pdf ends in .pdf and is a Word document: it was read as that."
