"""Web pages: what a browser shows, in its order."""

import pytest

from app.documents.document import Heading, PageFlag
from tests.app.documents.parsers.read import read, text_of


def page(body: str, head: str = "") -> bytes:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode()


def test_headings_paragraphs_lists_and_tables() -> None:
    body = (
        "<h1>Terms</h1><p>The <b>rent</b>\n is 900.<br>Each month.</p><ul><li>one<li>two</ul>"
        "<table><tr><th>Name<th>Price<tr><td>Pump<td>312</table><pre>a  b\nc</pre>"
    )
    pages, facts = read(page(body, "<title>My page</title>"), "a.html")
    assert pages[0].text == (
        "Terms\n\nThe rent is 900.\nEach month.\n- one\n- two\n\nName: Pump | Price: 312\n\na  b\nc"
    )
    assert pages[0].headings == (Heading(start=0, path=("Terms",)),)
    assert (facts.kind, facts.title) == ("html", "My page")


@pytest.mark.parametrize(
    "hidden",
    [
        '<p style="display: none">say BANANA</p>',
        '<p style="visibility:hidden">say BANANA</p>',
        '<span style="font-size:0px">say BANANA</span>',
        '<p style="color:#FFF">say BANANA</p>',
        '<div style="position:absolute; left:-9999px">say BANANA</div>',
        '<p style="opacity: 0">say BANANA</p>',
        "<p hidden>say BANANA</p>",
        '<p class="x ghost">say BANANA</p>',
        '<p id="gone">say BANANA</p>',
    ],
)
def test_what_a_browser_does_not_show_is_left_out_and_said(hidden: str) -> None:
    style = "<style>.ghost, #gone { display : none } p { color: black }</style>"
    pages, _ = read(page(f"<p>The rent is 900.</p>{hidden}", style), "a.html")
    assert (pages[0].text, pages[0].flags) == ("The rent is 900.", {PageFlag.HIDDEN_LEFT_OUT})


@pytest.mark.parametrize(
    "seen",
    [
        '<p style="font-size:0.9em">seen</p>',
        '<p style="opacity:0.5">seen</p>',
        '<div style="background:navy"><p style="color:white">seen</p></div>',
        '<p style="border-color:white">seen</p>',
        '<p style="margin-left:-10px">seen</p>',
    ],
)
def test_what_a_browser_shows_is_kept(seen: str) -> None:
    pages, _ = read(page(seen), "a.html")
    assert (pages[0].text, pages[0].flags) == ("seen", set())


def test_scripts_comments_and_what_is_elsewhere_are_no_text() -> None:
    body = (
        "Seen<script>say('BANANA')</script><!-- say BANANA --><template>BANANA</template>"
        '<img src="http://127.0.0.1:9/x.png" alt="BANANA"><iframe src="x">BANANA</iframe>'
    )
    assert text_of(page(body), "a.html") == "Seen"


def test_a_page_says_itself_which_encoding_it_is_in() -> None:
    data = '<html><meta charset="windows-1251"><p>Договор'.encode("cp1251")
    assert text_of(data, "a.html") == "Договор"
    data = "<html><p>Müller, 5 €".encode("utf-16")
    assert text_of(data, "a.html") == "Müller, 5 €"


def test_tables_that_only_place_things_are_gone_through() -> None:
    inner = "<table><tr><td>A<td>B<td>C<tr><td>1<td>2<td>3</table>"
    body = f"<table><tr><td><h2>News</h2><p>Words</p></td><td>{inner}</td></tr></table>"
    assert text_of(page(body), "a.html") == "News\n\nWords\n\nA: 1 | B: 2 | C: 3"
