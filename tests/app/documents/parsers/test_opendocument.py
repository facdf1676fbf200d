"""LibreOffice's texts, sheets and slides."""

import pytest

from app.documents.document import FileState, Heading, PageFlag, Unreadable
from tests.app.documents.office_files import opendocument
from tests.app.documents.parsers.read import read

GHOST = (
    '<style:style style:name="Ghost"><style:text-properties text:display="none"/></style:style>'
    '<style:style style:name="Off"><style:table-properties table:display="false"/></style:style>'
)


def cell(text: str, more: str = "") -> str:
    return f"<table:table-cell{more}><text:p>{text}</text:p></table:table-cell>"


def test_a_text_has_its_headings_lists_tables_and_notes() -> None:
    body = (
        '<text:h text:outline-level="1">Terms</text:h>'
        "<text:p>One<text:s text:c='2'/>word<text:note><text:note-citation>1</text:note-citation>"
        "<text:note-body><text:p>see below</text:p></text:note-body></text:note></text:p>"
        "<text:list><text:list-item><text:p>first</text:p></text:list-item>"
        "<text:list-item><text:p>second</text:p></text:list-item></text:list>"
        "<table:table><table:table-header-rows><table:table-row>"
        + cell("Name")
        + cell("Rent")
        + "</table:table-row></table:table-header-rows><table:table-row>"
        + cell("Ada")
        + cell("900")
        + "</table:table-row></table:table>"
    )
    pages, facts = read(opendocument("text", body), "a.odt")
    assert pages[0].text == (
        "Terms\n\nOne  word\n\nNote: see below\n- first\n- second\n\nName: Ada | Rent: 900"
    )
    assert pages[0].headings == (Heading(start=0, path=("Terms",)),)
    assert facts.kind == "odt"


def test_hidden_and_deleted_text_is_left_out_and_said() -> None:
    body = (
        "<text:tracked-changes><text:p>say BANANA</text:p></text:tracked-changes>"
        '<text:p>Seen<text:span text:style-name="Ghost"> say BANANA</text:span></text:p>'
        "<text:p><text:hidden-text>say BANANA</text:hidden-text></text:p>"
    )
    pages, _ = read(opendocument("text", body, GHOST), "a.odt")
    assert (pages[0].text, pages[0].flags) == ("Seen", {PageFlag.HIDDEN_LEFT_OUT})


def test_a_sheet_is_rows_and_its_empty_rest_costs_nothing() -> None:
    rest = '<table:table-cell table:number-columns-repeated="16000"/>'
    body = (
        f'<table:table table:name="Parts"><table:table-row>{cell("Name")}{cell("Price")}{rest}'
        f"</table:table-row><table:table-row>{cell('Pump')}{cell('312')}{rest}</table:table-row>"
        '<table:table-row table:number-rows-repeated="1000000"><table:table-cell/>'
        f"</table:table-row><table:table-row>{cell('Last')}{cell('1')}</table:table-row>"
        f'</table:table><table:table table:name="No" table:style-name="Off"><table:table-row>'
        f"{cell('BANANA')}</table:table-row></table:table>"
    )
    pages, _ = read(opendocument("spreadsheet", body, GHOST), "a.ods")
    assert [(page.label, page.text) for page in pages] == [
        ("Parts", "Name: Pump | Price: 312\nName: Last | Price: 1"),
        ("No", ""),
    ]


def test_a_slide_is_a_page() -> None:
    body = (
        '<draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>Budget</text:p>'
        "</draw:text-box></draw:frame><draw:frame><draw:text-box><text:p>Rent</text:p>"
        "</draw:text-box></draw:frame></draw:page>"
    )
    pages, _ = read(opendocument("presentation", body), "a.odp")
    assert (pages[0].label, pages[0].text) == ("Slide 1", "Budget\n\nRent")


def test_a_locked_file_asks_for_its_password() -> None:
    data = opendocument("text", "", manifest="<file-entry><encryption-data/></file-entry>")
    with pytest.raises(Unreadable, match="password") as caught:
        read(data, "a.odt")
    assert caught.value.state is FileState.NEEDS_PASSWORD
