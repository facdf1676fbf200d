"""Excel: rows as lines with the names of their columns, values as the sheet shows them."""

import time

import pytest

from app.documents.document import FileState, PageFlag, Unreadable
from app.documents.parsers.xlsx_values import Form, form_of, shown
from tests.app.documents.office_files import xlsx, zipped
from tests.app.documents.parsers.read import read


def row(number: int, *cells: str) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


def text(place: str, words: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{words}</t></is></c>'


def number(place: str, value: str, style: int = 0) -> str:
    return f'<c r="{place}" s="{style}"><v>{value}</v></c>'


def test_a_sheet_is_rows_of_named_values() -> None:
    sheet = row(1, '<c r="A1" t="s"><v>0</v></c>', '<c r="B1" t="s"><v>1</v></c>')
    sheet += row(2, text("A2", "Pump"), number("B2", "312.5"))
    sheet += row(4, text("A4", "Valve"), '<c r="B4" t="b"><v>1</v></c>')
    pages, facts = read(xlsx({"Parts": sheet}, texts=("Name", "Price")), "a.xlsx")
    assert [(page.label, page.text) for page in pages] == [
        ("Parts", "Name: Pump | Price: 312.5\nName: Valve | Price: TRUE")
    ]
    assert facts.kind == "xlsx"


def test_numbers_are_shown_by_their_format() -> None:
    sheet = row(1, text("A1", "Day"), text("B1", "Share"), text("C1", "From"))
    sheet += row(2, number("A2", "46097", 1), number("B2", "0.075", 2), number("C2", "0.395833", 3))
    data = xlsx({"S": sheet}, formats=("dd/mm/yyyy", "0.0%", "hh:mm"))
    pages, _ = read(data, "a.xlsx")
    assert pages[0].text == "Day: 2026-03-16 | Share: 7.5% | From: 09:30"


def test_a_cell_far_away_costs_nothing() -> None:
    sheet = row(1, text("A1", "near")) + row(1_048_576, text("XFD1048576", "far"))
    start = time.process_time()
    pages, _ = read(xlsx({"S": sheet}), "a.xlsx")
    assert time.process_time() - start < 2
    assert [page.text for page in pages] == ["near\nfar"]
    assert pages[0].label == "S"


def test_a_long_sheet_is_pages_named_after_their_rows() -> None:
    sheet = row(1, text("A1", "Name"), text("B1", "Price"))
    sheet += "".join(
        row(n, text(f"A{n}", f"part {n}"), number(f"B{n}", str(n))) for n in range(2, 122)
    )
    pages, _ = read(xlsx({"S": sheet}), "a.xlsx")
    assert [page.label for page in pages] == ["S, rows 2-51", "S, rows 52-101", "S, rows 102-121"]
    assert pages[2].text.startswith("Name: part 102 | Price: 102")


def test_a_hidden_sheet_is_left_out_and_said() -> None:
    data = xlsx(
        {"Seen": row(1, text("A1", "one")), "Secret": row(1, text("A1", "BANANA"))},
        hidden=("Secret",),
    )
    pages, _ = read(data, "a.xlsx")
    assert [(page.label, page.text, set(page.flags)) for page in pages] == [
        ("Seen", "one", set()),
        ("Secret", "", {PageFlag.HIDDEN_LEFT_OUT}),
    ]


def test_more_cells_than_the_limit_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.documents.parsers.xlsx.MOST_CELLS", 10)
    sheet = "".join(row(n, number(f"A{n}", str(n))) for n in range(1, 100))
    pages, facts = read(xlsx({"S": sheet}), "a.xlsx")
    assert pages[0].text.split("\n")[-1] == "10"
    assert facts.notice == "10 cells of it were read, and the rest was left out."


@pytest.mark.parametrize(
    ("code", "form"),
    [
        ("General", Form.PLAIN),
        ("#,##0.00 [$€-407]", Form.PLAIN),
        ('0" days"', Form.PLAIN),
        ("0.0%", Form.PERCENT),
        ("[$-409]d-mmm-yy", Form.DATE),
        ("mmm yyyy", Form.DATE),
        ("h:mm AM/PM", Form.TIME),
        ("yyyy\\-mm\\-dd hh:mm", Form.MOMENT),
        ("[h]:mm", Form.DURATION),
        ("[Red]0.00", Form.PLAIN),
    ],
)
def test_a_format_tells_what_its_number_is(code: str, form: Form) -> None:
    assert form_of(code) is form


def test_values_that_are_no_numbers_stay_what_they_are() -> None:
    assert shown("#REF!", Form.DATE, False) == "#REF!"
    assert shown("-3", Form.DATE, False) == "-3"
    assert shown("1e300", Form.MOMENT, False) == "1e+300"
    assert shown("nan", Form.PLAIN, False) == "nan"
    assert shown("inf", Form.DURATION, False) == "inf"
    assert shown("0", Form.DATE, True) == "1904-01-01"


def test_a_workbook_that_declares_entities_is_refused() -> None:
    bomb = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    members = {
        "xl/workbook.xml": f'<!DOCTYPE w [<!ENTITY a0 "ha">{bomb}]><workbook>&a11;</workbook>'
    }
    with pytest.raises(Unreadable, match="grow to") as caught:
        read(zipped(members), "a.xlsx")
    assert caught.value.state is FileState.TOO_LARGE
