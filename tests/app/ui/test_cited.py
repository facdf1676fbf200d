"""Answers from the user's files: chips for marks, what is not found, and what was looked at."""

import html
from dataclasses import replace
from typing import Any

from app.documents.citation import Citation, Span, Verdict
from app.documents.grounds import Grounds, nothing_found
from app.ui.cited import UNFOUND, cited, looked_at
from app.ui.render import rows
from tests.app.documents.test_grounds import quotation
from tests.app.ui.test_render import answer, text_of

SOURCES = (
    quotation(paths=("/papers/lease.pdf",), page=12, page_to=12, label="12"),
    quotation(paths=("/papers/<b>\u202efdp.exe\n.txt",), page=1, page_to=1, label="Intro"),
)


def at(content: str, words: str, **changes: Any) -> Citation:
    """Of the sentence before a mark, which is `words`; an added one has none."""
    start = content.index(words)
    values: dict[str, Any] = {
        "number": 1,
        "sentence": Span(0, start),
        "mark": Span(start, start + len(words)),
        "verdict": Verdict.KEPT,
        "written": 1,
    }
    return Citation(**values | changes)


def shown(content: str, *citations: Citation, unfound: tuple[Span, ...] = ()) -> str:
    grounds = Grounds(is_found=True, quotations=SOURCES, citations=citations, unfound=unfound)
    return cited(answer(content), grounds)


def test_a_mark_is_a_chip_with_file_and_page_that_opens_the_page() -> None:
    text = shown("It ends in May [1].", at("It ends in May [1].", "[1]"))
    assert 'It ends in May <a class="cite" href="#passage-m-1-1"' in text
    assert ">lease.pdf, p. 12</a>." in html.unescape(text)


def test_a_corrected_and_an_added_mark_say_so() -> None:
    content = "It ends [2]. It began."
    end = len(content) - 1
    text = html.unescape(
        shown(
            content,
            at(content, "[2]", verdict=Verdict.CORRECTED, written=2),
            at(content, ".", mark=Span(end, end), verdict=Verdict.ADDED, written=None),
        )
    )
    assert "lease.pdf, p. 12 · corrected</a>" in text
    assert "The model named another passage; this one says it." in text
    assert "began <a" in text and "lease.pdf, p. 12 · added</a>." in text


def test_a_dropped_mark_is_not_shown() -> None:
    content = "It is blue [1]."
    assert shown(content, at(content, "[1]", verdict=Verdict.DROPPED)) == "It is blue."


def test_names_of_files_are_shown_as_they_are() -> None:
    content = "So [2]."
    text = shown(content, at(content, "[2]", number=2))
    assert "<b>" not in text and "\u202e" not in text and "\n" not in text
    assert "<b>\ufffdfdp.exe\ufffd.txt, p. 1</a>" in html.unescape(text)


def test_in_code_and_formulas_marks_are_letters() -> None:
    content = "As `a [1]`.\n\n```\nb [1]\n```\n"
    first = content.index("[1]")
    second = content.rindex("[1]")
    marks = [at(content, "[1]", number=2, mark=Span(each, each + 3)) for each in (first, second)]
    assert shown(content, *marks) == content.replace("[1]", "[2]")


def test_what_is_not_found_is_marked_line_by_line_and_lists_stay_lists() -> None:
    content = "- One thing.\n- Another\n  one.\n\n| a | b |"
    text = shown(content, unfound=(Span(2, len(content)),))
    mark = f'<span class="unfound" title="{UNFOUND}">'
    assert text == (
        f"- {mark}One thing.</span>\n- {mark}Another</span>\n  {mark}one.</span>\n\n| a | b |"
    )


def test_the_number_of_a_list_is_no_sentence_though_it_has_a_full_stop() -> None:
    content = "1998. One thing.\n1999. **Two**"
    texts = ("1998.", "One thing.", "1999.", "**Two**")
    spans = [(content.index(each), content.index(each) + len(each)) for each in texts]
    text = shown(content, unfound=tuple(Span(*each) for each in spans))
    mark = f'<span class="unfound" title="{UNFOUND}">'
    assert text == f"1998. {mark}One thing.</span>\n1999. {mark}**Two**</span>"


def test_code_stays_code_though_a_sentence_around_it_is_not_found() -> None:
    content = "So:\n\n```python\nb = a[1]\n```\n\nThat."
    text = shown(content, unfound=(Span(0, len(content)),))
    mark = f'<span class="unfound" title="{UNFOUND}">'
    assert text == f"{mark}So:</span>\n\n```python\nb = a[1]\n```\n\n{mark}That.</span>"


def test_a_model_cannot_write_what_stands_for_our_chips() -> None:
    for content in ("a \ue0001\ue001 b", "\ue00099\ue001", "\ue002x\ue003"):
        text = shown(content)
        assert "<a" not in text and "\ue000" not in text


def test_signs_of_ours_in_an_answer_are_shown_as_unknown_ones_and_move_nothing() -> None:
    content = "\ue0001\ue001 ends \ue002in May\ue003 [1]."
    text = shown(content, at(content, "[1]"))
    assert text.startswith("\ufffd1\ufffd ends \ufffdin May\ufffd <a ") and text.count("<a") == 1
    assert "span" not in text and text.endswith("</a>.")
    assert shown(f"\ue000{'1' * 5000}\ue001") == f"\ufffd{'1' * 5000}\ufffd"


def test_below_the_answer_stands_what_was_looked_at() -> None:
    content = "It ends in May [1]."
    grounds = Grounds(
        is_found=True, num_documents=3, quotations=SOURCES, citations=(at(content, "[1]"),)
    )
    (row,) = rows([answer(content, grounds=grounds)])
    looked = html.unescape(text_of(row).split("\n\n")[1])
    assert looked.startswith('<p class="looked">Looked at: <a class="cite" href="#passage-m-1-0"')
    assert '<a class="cite unused" href="#passage-m-2-0"' in looked
    assert "1: lease.pdf, p. 12" in looked and "2: <b>" in looked
    nothing = replace(grounds, is_found=False, citations=())
    (row,) = rows([answer(nothing_found(nothing), grounds=nothing)])
    assert "I found nothing about this" in text_of(row)
    assert "The nearest passages: " in html.unescape(text_of(row))
    assert looked_at(answer(), replace(nothing, quotations=())) == ""
