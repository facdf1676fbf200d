"""Running text as pages that can be cited."""

from hypothesis import given
from hypothesis import strategies as st

from app.documents.blocks import MOST_CHARACTERS, Block, paginate
from app.documents.document import Heading, PageFlag

LONG = "A sentence of some words. " * 60


def test_a_text_without_headings_is_named_after_what_is_counted() -> None:
    pages = list(paginate([Block(text=LONG) for _ in range(8)], "Paragraph"))
    assert [page.label for page in pages] == ["Paragraphs 1-3", "Paragraphs 4-6", "Paragraphs 7-8"]
    assert [page.label for page in paginate([Block(text="x")], "Line")] == ["Line 1"]


def test_a_page_ends_at_a_heading_when_it_is_long_enough() -> None:
    blocks = [Block(text="One", level=1), *[Block(text=LONG)] * 2, Block(text="Two", level=1)]
    pages = list(paginate([*blocks, Block(text="short"), Block(text="Three", level=2)], "P"))
    assert [page.label for page in pages] == ["One", "Two"]
    assert pages[1].headings[1].path == ("Two", "Three")


def test_what_goes_on_still_stands_under_its_heading() -> None:
    blocks = [Block(text="One", level=1), *[Block(text=LONG)] * 8]
    pages = list(paginate(blocks, "Paragraph"))
    assert [page.label for page in pages] == ["One", "One (2)", "One (3)"]
    assert pages[2].headings == (Heading(start=0, path=("One",)),)


def test_a_part_begins_a_page_of_its_own() -> None:
    blocks = [Block(text="a", begins="First"), Block(text="b"), Block(text="c", begins="Second")]
    pages = list(paginate(blocks, "P"))
    assert [(page.label, page.text) for page in pages] == [("First", "a\n\nb"), ("Second", "c")]


def test_what_was_hidden_is_said_even_where_nothing_else_stands() -> None:
    (page,) = paginate([Block(text="", hides=True)], "Paragraph")
    assert (page.text, page.flags) == ("", {PageFlag.HIDDEN_LEFT_OUT})


texts = st.text(alphabet="ab .\n", max_size=3 * MOST_CHARACTERS)
some_blocks = st.lists(
    st.builds(Block, text=texts, level=st.integers(0, 3), follows=st.booleans()), max_size=12
)


@given(some_blocks)
def test_nothing_is_lost_and_every_heading_is_at_its_place(blocks: list[Block]) -> None:
    pages = list(paginate(blocks, "P"))
    assert "".join("".join(page.text.split()) for page in pages) == "".join(
        "".join(block.text.split()) for block in blocks
    )
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))
    named = [block.text.split() for block in blocks if block.level and block.text.split()]
    found = [
        heading.path[-1].split()
        for page in pages
        for heading in page.headings
        if page.text[heading.start :].startswith(heading.path[-1][:50])
    ]
    assert all(name in found for name in named)
