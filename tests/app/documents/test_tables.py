"""Rows that can be understood alone."""

from app.documents.tables import Line, lines_of, simple_lines


def numbered(*rows: list[str]) -> list[tuple[int, list[str]]]:
    return list(enumerate(rows, start=1))


def test_the_first_row_of_names_names_the_columns() -> None:
    rows = numbered(["Name", "Price"], ["Pump", "312"], [], ["Valve", ""], ["Seal", "4", "new"])
    assert list(lines_of(rows)) == [
        Line(2, "Name: Pump | Price: 312"),
        Line(4, "Name: Valve"),
        Line(5, "Name: Seal | Price: 4 | new"),
    ]


def test_a_title_above_the_names_is_a_line_of_its_own() -> None:
    rows = numbered(["Parts of 2026"], [], ["Name", "Price", "Store"], ["Pump", "312", "Jena"])
    assert [line.text for line in lines_of(rows)] == [
        "Parts of 2026",
        "Name: Pump | Price: 312 | Store: Jena",
    ]


def test_rows_of_figures_have_no_names() -> None:
    assert [line.text for line in lines_of(numbered(["1", "2"], ["3", "4"]))] == ["1 | 2", "3 | 4"]


def test_names_that_stand_twice_are_no_names() -> None:
    rows = numbered(["yes", "yes"], ["no", "yes"])
    assert [line.text for line in lines_of(rows)] == ["yes | yes", "no | yes"]


def test_names_alone_are_shown() -> None:
    assert list(lines_of(numbered(["Name", "Price"]))) == [Line(1, "Name | Price")]
    assert list(lines_of([])) == []


def test_two_columns_within_a_text_are_a_form_unless_their_maker_says_otherwise() -> None:
    rows = [["Tenant", "Ada"], ["Rent", "900 euros"]]
    assert simple_lines(rows) == ["Tenant | Ada", "Rent | 900 euros"]
    assert simple_lines(rows, has_names=True) == ["Tenant: Rent | Ada: 900 euros"]
