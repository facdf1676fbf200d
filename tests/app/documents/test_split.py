"""Passages: nothing is left out, nothing is torn apart that belongs together."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.documents.document import Heading, Page
from app.documents.split import (
    LEAST_REST,
    LONGEST_ROW,
    LONGEST_SENTENCE_OVERLEAF,
    MOST_WORDS,
    OVERLAP,
    WORD,
    passage_text,
    split,
)

WORDS = st.sampled_from(
    ["house", "Tür.", "and", "3.5", "дом", "家庭", "no", "yes!", "“quoted.”", "a" * 50, "ประเทศ"]
)
GAPS = st.sampled_from([" ", " ", " ", "  ", "\n", "\n\n"])
ROW = "name: {0} | value: {0} | note: some more words of row {0}"


def page(text: str, number: int = 1, *headings: Heading) -> Page:
    return Page(number=number, label=str(number), text=text, headings=headings)


def texts_of(pages: list[Page]) -> list[str]:
    texts = {each.number: each.text for each in pages}
    return [passage_text(passage, texts) for passage in split(pages)]


def sentence(number: int, length: int) -> str:
    return " ".join(f"w{number}x{place}" for place in range(length)) + "."


@st.composite
def documents(draw: st.DrawFn) -> list[Page]:
    pages = []
    for number in range(1, draw(st.integers(1, 4)) + 1):
        parts = draw(st.lists(st.tuples(WORDS, GAPS), max_size=400))
        text = "".join(word + gap for word, gap in parts)
        starts = draw(st.lists(st.integers(0, max(0, len(text) - 1)), max_size=3))
        headings = [Heading(start=start, path=("A", str(start))) for start in sorted(starts)]
        pages.append(page(text, number, *headings))
    return pages


@settings(max_examples=60, deadline=None)
@given(documents())
def test_every_word_is_in_a_passage_and_none_is_far_too_long(pages: list[Page]) -> None:
    passages = list(split(pages))
    texts = {each.number: each.text for each in pages}
    covered: dict[int, list[tuple[int, int]]] = {each.number: [] for each in pages}
    for passage in passages:
        assert passage.page_from <= passage.page_to <= passage.page_from + 1
        length = len(WORD.findall(passage_text(passage, texts)))
        assert 0 < length <= MOST_WORDS + LEAST_REST + LONGEST_SENTENCE_OVERLEAF
        if passage.page_from == passage.page_to:
            assert passage.start < passage.end
        covered[passage.page_from].append(
            (
                passage.start,
                passage.end
                if passage.page_to == passage.page_from
                else len(texts[passage.page_from]),
            )
        )
    for each in pages:
        for match in WORD.finditer(each.text):
            start, end = match.span()
            assert any(first <= start and end <= last for first, last in covered[each.number])


@settings(max_examples=30, deadline=None)
@given(documents())
def test_the_same_document_is_always_divided_the_same_way(pages: list[Page]) -> None:
    assert list(split(pages)) == list(split(iter(pages)))


@settings(max_examples=30, deadline=None)
@given(documents())
def test_passages_come_in_the_order_of_the_text(pages: list[Page]) -> None:
    places = [(each.page_from, each.start) for each in split(pages)]
    assert places == sorted(set(places))


def test_an_empty_page_has_no_passage_and_a_short_one_has_one() -> None:
    assert list(split([page(""), page(" \n\n ", 2)])) == []
    assert texts_of([page("One line.")]) == ["One line."]


def test_a_passage_ends_with_a_sentence_and_the_next_begins_with_the_last_of_them() -> None:
    text = " ".join(sentence(number, 15) for number in range(20))
    found = texts_of([page(text)])
    assert all(each.endswith(".") for each in found)
    for one, other in zip(found, found[1:], strict=False):
        shared = sentence(int(other.split("x")[0][1:]), 15)
        assert one.endswith(shared) and other.startswith(shared)


def test_words_without_any_sentence_overlap_as_well() -> None:
    found = texts_of([page(" ".join(f"w{number}" for number in range(400)))])
    assert [len(each.split()) for each in found[:-1]] == [MOST_WORDS] * (len(found) - 1)
    assert found[0].split()[-OVERLAP:] == found[1].split()[:OVERLAP]


def test_a_paragraph_is_a_better_end_than_a_sentence() -> None:
    one = " ".join(sentence(number, 10) for number in range(9))
    two = " ".join(sentence(number, 10) for number in range(9, 20))
    assert texts_of([page(f"{one}\n\n{two}")])[0] == one


def test_a_passage_never_goes_on_over_a_heading() -> None:
    one, two = (" ".join(sentence(n, 10) for n in range(k, k + 6)) for k in (0, 6))
    text = f"First\n{one}\n\nSecond\n{two}"
    place = text.index("Second")
    headings = Heading(start=0, path=("First",)), Heading(start=place, path=("First", "Second"))
    passages = list(split([page(text, 1, *headings)]))
    assert [each.heading for each in passages] == [("First",), ("First", "Second")]
    assert passages[1].start == place


def test_short_sections_share_a_passage_under_what_they_have_in_common() -> None:
    text = "Intro words.\nPart A\nfew words.\nPart B\nfew more."
    headings = [
        Heading(start=text.index(name), path=("Book", name)) for name in ("Part A", "Part B")
    ]
    (passage,) = split([page(text, 1, Heading(start=0, path=("Book",)), *headings)])
    assert passage.heading == ("Book",)


def test_what_stands_before_the_first_heading_of_a_page_belongs_to_the_one_before() -> None:
    pages = [page("Title\nText.", 1, Heading(start=0, path=("Title",))), page("Goes on.", 2)]
    assert [each.heading for each in split(pages)] == [("Title",), ("Title",)]


def test_the_row_of_a_table_is_never_cut() -> None:
    rows = [ROW.format(number) for number in range(60)]
    found = texts_of([page("Before.\n\n" + "\n".join(rows) + "\n\nAfter it.")])
    assert len(found) > 3
    for row in rows:
        assert any(row in each for each in found)
    for each in found:
        assert all(
            line in rows or line in ("Before.", "", "After it.") for line in each.split("\n")
        )


def test_a_long_row_stays_whole_and_an_endless_one_does_not() -> None:
    long = " | ".join(f"c{number}: v{number}" for number in range(120))
    assert texts_of([page(long)]) == [long]
    endless = " | ".join(f"c{number}: v{number}" for number in range(LONGEST_ROW))
    assert len(texts_of([page(endless)])) > 3


def test_a_sentence_that_goes_on_overleaf_stays_whole() -> None:
    pages = [page("It was a long day and the"), page("night came late. A new one.", 2)]
    first, second = split(pages)
    assert (first.page_from, first.page_to, second.page_from) == (1, 2, 2)
    assert texts_of(pages) == ["It was a long day and the\nnight came late.", pages[1].text]


@pytest.mark.parametrize(
    ("ending", "beginning"),
    [("It ends.", "small letters."), ("It has no end", "Capital."), ("a: 1 | b: 2", "small.")],
)
def test_other_passages_end_with_their_page(ending: str, beginning: str) -> None:
    assert [each.page_to for each in split([page(ending), page(beginning, 2)])] == [1, 2]


def test_two_characters_of_a_script_without_spaces_count_as_a_word() -> None:
    text = "黑豹队的防守只丢了三百零八分。" * 60
    found = texts_of([page(text)])
    assert all(each.endswith("。") for each in found)
    assert all(len(each) <= 2 * (MOST_WORDS + LEAST_REST) for each in found)


def test_no_more_than_two_pages_are_held() -> None:
    taken: list[int] = []

    def one_by_one() -> Iterator[Page]:
        for number in range(1, 50):
            taken.append(number)
            yield page("Some words.", number)

    assert next(split(one_by_one())).page_from == 1
    assert taken == [1, 2]
