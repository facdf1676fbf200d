"""Tables of values, whatever stands between them and whatever they are encoded in."""

import pytest

from tests.app.documents.parsers.read import read


def test_a_german_table_is_understood() -> None:
    data = (
        'Kunde;Ort;Betrag\r\nMüller & Söhne;Köln;1.234,50\r\n"Gärtnerei; Linde";Jena;87,00\r\n'
    ).encode("cp1252")
    pages, facts = read(data, "a.csv")
    assert pages[0].text == (
        "Kunde: Müller & Söhne | Ort: Köln | Betrag: 1.234,50\n"
        "Kunde: Gärtnerei; Linde | Ort: Jena | Betrag: 87,00"
    )
    assert (pages[0].label, facts.kind) == ("Rows 2-3", "csv")


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_every_usual_sign_between_values_is_found(sign: str) -> None:
    rows = [["Name", "Note"], ["Ada", "a, b; c"], ["Bob", "d"]]
    data = "\n".join(sign.join(f'"{value}"' for value in row) for row in rows).encode()
    pages, _ = read(data, "a.csv")
    assert pages[0].text == "Name: Ada | Note: a, b; c\nName: Bob | Note: d"


def test_excels_own_line_about_the_sign_is_no_row() -> None:
    pages, _ = read(b"sep=;\nA;B\n1;2\n", "a.csv")
    assert (pages[0].text, pages[0].label) == ("A: 1 | B: 2", "Row 3")


def test_a_value_may_have_lines_and_a_table_no_names() -> None:
    pages, _ = read(b'1,"two\nlines",3\n4,5,6\n', "a.csv")
    assert pages[0].text == "1 | two lines | 3\n4 | 5 | 6"


def test_a_long_table_is_pages_of_fifty_rows() -> None:
    data = b"Name,Price\n" + b"".join(b"part %d,%d\n" % (n, n) for n in range(120))
    pages, _ = read(data, "a.csv")
    assert [page.label for page in pages] == ["Rows 2-51", "Rows 52-101", "Rows 102-121"]
    assert pages[2].text.startswith("Name: part 100 | Price: 100\n")
