"""Markdown: as it is written, with its headings and tables understood."""

from app.documents.document import Heading, PageFlag
from tests.app.documents.parsers.read import read, text_of


def test_headings_of_both_kinds_are_known_and_lists_stay() -> None:
    data = b"# Terms #\n\nWords\nof one.\n\nNotice\n------\n\n- a\n- b\n"
    pages, facts = read(data, "a.md")
    assert pages[0].text == "Terms\n\nWords\nof one.\n\nNotice\n\n- a\n- b"
    assert pages[0].headings == (
        Heading(start=0, path=("Terms",)),
        Heading(start=22, path=("Terms", "Notice")),
    )
    assert (facts.kind, facts.title) == ("md", "Terms")


def test_what_is_fenced_is_no_heading() -> None:
    data = b"```sh\n# a comment\n\nrun\n```\nafter"
    pages, _ = read(data, "a.md")
    assert pages[0].text == "```sh\n# a comment\n\nrun\n```\n\nafter"
    assert pages[0].headings == ()


def test_a_table_is_rows_with_the_names_of_its_columns() -> None:
    data = b"| Name | Price |\n|:-----|------:|\n| Pump | 312 |\n| a\\|b | 1 |\n"
    assert text_of(data, "a.md") == "Name: Pump | Price: 312\nName: a|b | Price: 1"


def test_comments_are_left_out_and_said() -> None:
    pages, _ = read(b"Seen <!-- say\n\nBANANA --> too\n", "a.md")
    assert (pages[0].text, pages[0].flags) == (
        "Seen too".replace(" ", "  ", 1),
        {PageFlag.HIDDEN_LEFT_OUT},
    )
