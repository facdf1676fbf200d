"""PDF: text in the order of reading, pages by their labels, and what is wrong with a file."""

import re

import pytest

from app.documents.document import FileState, Heading, PageFlag, Unreadable
from app.documents.parsers.pdf import is_garbled
from tests.app.documents.parsers.read import read, text_of
from tests.app.documents.pdf_file import PdfFile, mapped_font, pdf_of, shown

PROSE = "It was the best of times, it was the worst of times, it was the age of wisdom and foolish"


def state_of(data: bytes, password: str = "") -> tuple[FileState, str]:
    with pytest.raises(Unreadable) as caught:
        read(data, "a.pdf", password)
    return caught.value.state, str(caught.value)


def test_each_page_has_its_text_and_number() -> None:
    pages, facts = read(pdf_of([["One"], ["Two", "lines"]]), "a.pdf")
    assert [(page.number, page.label, page.text) for page in pages] == [
        (1, "1", "One"),
        (2, "2", "Two\nlines"),
    ]
    assert (facts.kind, facts.num_pages) == ("pdf", 2)


def test_a_page_has_the_label_that_is_printed_on_it() -> None:
    file = PdfFile()
    for text in ("Preface", "Start"):
        file.page(shown(text, 72, 700))
    file.catalog = b"/PageLabels<</Nums[0<</S/r/St 4>>1<</S/D/P(A-)>>]>>"
    pages, _ = read(file.data(), "a.pdf")
    assert [page.label for page in pages] == ["iv", "A-1"]


def test_a_file_with_a_password_asks_for_it_and_opens_with_it() -> None:
    data = pdf_of([["Secret plans"]], password="abc")
    state, sentence = state_of(data)
    assert (state, "protected by a password" in sentence) == (FileState.NEEDS_PASSWORD, True)
    state, sentence = state_of(data, "wrong-one")
    assert (state, "wrong-one" in sentence) == (FileState.NEEDS_PASSWORD, False)
    pages, _ = read(data, "a.pdf", "abc")
    assert pages[0].text == "Secret plans"


def test_scanned_pages_are_counted_and_not_taken_for_read() -> None:
    file = PdfFile()
    for _ in range(3):
        file.picture_page()
    pages, _ = read(file.data(), "a.pdf")
    assert [(page.text, page.flags) for page in pages] == [("", {PageFlag.PICTURE_ONLY})] * 3


def test_a_pdf_of_empty_pages_has_no_text() -> None:
    file = PdfFile()
    for _ in range(3):
        file.page(b"")
    assert state_of(file.data()) == (
        FileState.NO_TEXT,
        "a.pdf has no text on any of its 3 pages.",
    )


def test_one_scanned_page_among_others_is_flagged() -> None:
    file = PdfFile()
    file.page(shown("Text", 72, 700))
    file.picture_page()
    file.page(b"")
    pages, _ = read(file.data(), "a.pdf")
    assert [page.flags for page in pages] == [set(), {PageFlag.PICTURE_ONLY}, set()]


def test_columns_are_read_one_after_the_other() -> None:
    file = PdfFile()
    left = [f"left line {row} of the text" for row in range(5)]
    right = [f"right line {row} of the text" for row in range(5)]
    drawn = [shown(line, 60, 700 - 14 * row) for row, line in enumerate(left)]
    drawn += [shown(line, 330, 700 - 14 * row) for row, line in enumerate(right)]
    file.page(b"".join(drawn))
    assert text_of(file.data(), "a.pdf") == "\n".join(left + right)


def test_a_table_without_lines_keeps_its_rows() -> None:
    file = PdfFile()
    rows = [("Code", "Place", "Expected"), ("SKU-8847", "A-12", "450"), ("SKU-9201", "B-07", "289")]
    file.page(
        b"".join(
            shown(cell, 72 + 120 * column, 700 - 16 * row)
            for row, cells in enumerate(rows)
            for column, cell in enumerate(cells)
        )
    )
    text = text_of(file.data(), "a.pdf")
    assert text == "Code Place Expected\nSKU-8847 A-12 450\nSKU-9201 B-07 289"


def test_a_word_broken_at_the_end_of_a_line_is_joined() -> None:
    data = pdf_of([["consectetuer adip-", "iscing elit, a well-", "known text"]])
    assert "adipiscing elit" in text_of(data, "a.pdf")


def test_a_turned_page_is_read_along_its_lines() -> None:
    file = PdfFile()
    file.page(
        b"".join(
            b"BT /F1 12 Tf 0 1 -1 0 %d 72 Tm (%s) Tj ET\n" % (100 + 14 * row, line)
            for row, line in enumerate((b"A toolkit for detecting", b"and extracting text"))
        ),
        extra=b"/Rotate 90",
    )
    assert text_of(file.data(), "a.pdf") == "A toolkit for detecting\nand extracting text"


def test_japanese_in_a_font_that_is_not_embedded() -> None:
    file = PdfFile()
    below = file.add(
        b"<</Type/Font/Subtype/CIDFontType0/BaseFont/Ryumin-Light/CIDSystemInfo"
        b"<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>/FontDescriptor"
        b"<</Type/FontDescriptor/FontName/Ryumin-Light/Flags 4>>>>"
    )
    font = file.add(
        b"<</Type/Font/Subtype/Type0/BaseFont/Ryumin-Light-EUC-H/Encoding/EUC-H"
        b"/DescendantFonts[%d 0 R]>>" % below
    )
    codes = "あいうえお".encode("euc_jp").hex().encode()
    file.page(b"BT /F1 24 Tf 72 700 Td <%s> Tj ET" % codes, font=font)
    assert text_of(file.data(), "a.pdf") == "あいうえお"


def test_a_lost_table_of_objects_is_made_anew() -> None:
    data = pdf_of([["Reduced test-case"]])
    without = re.sub(rb"xref\n.*?trailer", b"trailer", data, flags=re.DOTALL)
    assert b"0000000000 65535" not in without
    assert text_of(without, "a.pdf") == "Reduced test-case"


def test_what_cannot_be_opened_is_damaged() -> None:
    state, sentence = state_of(b"%PDF-1.7\n" + bytes(range(256)) * 8)
    assert state is FileState.DAMAGED
    assert "a.pdf" in sentence


def test_the_outline_names_what_a_page_stands_under() -> None:
    file = PdfFile()
    first = file.page(shown("Chapter One", 72, 700) + shown("first words", 72, 680))
    file.page(shown("more words", 72, 700))
    third = file.page(shown("still of one", 72, 700) + shown("Part Two", 72, 680))
    root = len(file._objects) + 1
    file.add(b"<</Type/Outlines/First %d 0 R/Last %d 0 R/Count 2>>" % (root + 1, root + 2))
    file.add(
        b"<</Title(Chapter One)/Parent %d 0 R/Next %d 0 R/Dest[%d 0 R/Fit]>>"
        % (root, root + 2, first)
    )
    file.add(
        b"<</Title(Part Two)/Parent %d 0 R/Prev %d 0 R/Dest[%d 0 R/Fit]>>" % (root, root + 1, third)
    )
    file.catalog = b"/Outlines %d 0 R" % root
    pages, _ = read(file.data(), "a.pdf")
    one, two = ("Chapter One",), ("Part Two",)
    assert pages[0].headings == (Heading(start=0, path=one),)
    assert pages[1].headings == (Heading(start=0, path=one),)
    assert pages[2].headings == (Heading(start=0, path=one), Heading(start=13, path=two))


def test_letters_that_make_no_words_are_flagged() -> None:
    file = PdfFile()
    # A font that calls its letters something else: every third further on.
    shifted = {code: chr((code - 97 + 3) % 26 + 97) for code in range(97, 123)}
    strange = {code: chr(0xE000 + code) for code in range(97, 123)}
    for meanings in (shifted, strange):
        file.page(
            shown(2 * PROSE.lower().replace(" ", ""), 20, 700, 4), font=mapped_font(file, meanings)
        )
    file.page(shown(PROSE, 20, 700))
    pages, _ = read(file.data(), "a.pdf")
    assert [PageFlag.GARBLED in page.flags for page in pages] == [True, True, False]


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        "Der Vertrag verlängert sich jeweils um ein Jahr, wenn er nicht rechtzeitig gekündigt wird",
        "Wszystkie zmiany umowy wymagają formy pisemnej pod rygorem nieważności, chyba że strony",
        "Smluvní strany prohlašují, že si smlouvu přečetly a že byla sepsána podle jejich vůle",
        "Договор продлевается каждый раз на один год, если он не расторгнут одной из сторон",
        "SKU-8847 A-12 450 B-07 289 -23 SKU-9201 780 778 OK C-15 +15 SKU-4563 D-22 156 " * 3,
        "本契約は、期間満了の三か月前までに書面による通知がない限り、一年間自動的に更新される。",
        "",
    ],
)
def test_prose_and_tables_of_many_languages_are_not_garbled(text: str) -> None:
    assert not is_garbled(text)
