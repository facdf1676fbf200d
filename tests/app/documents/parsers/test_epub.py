"""E-books: chapters in the order in which they are read."""

import pytest

from app.documents.document import FileState, Heading, Unreadable
from tests.app.documents.office_files import epub
from tests.app.documents.parsers.read import read

CHAPTERS = {
    "nav": "<nav><h1>Contents</h1><a href='one'>One</a><a href='two'>Two</a></nav>",
    "toc": "<h1>Table of contents</h1><p><a href='one'>One</a></p><p><a href='two'>Two</a></p>",
    "two": "<h1>Chapter Two</h1><h2>Part 2.1</h2><p>second words</p>",
    "one": "<h1>Chapter One</h1><p>first words</p>",
}


def test_chapters_follow_the_spine_and_contents_are_left_out() -> None:
    pages, facts = read(epub(CHAPTERS, ("nav", "toc", "one", "two")), "a.epub")
    assert [(page.label, page.text) for page in pages] == [
        ("Chapter One", "Chapter One\n\nfirst words"),
        ("Chapter Two", "Chapter Two\n\nPart 2.1\n\nsecond words"),
    ]
    assert pages[1].headings[1] == Heading(start=13, path=("Chapter Two", "Part 2.1"))
    assert (facts.kind, facts.title) == ("epub", "A Book")


def test_a_book_locked_by_its_shop_says_so() -> None:
    lock = '<encryption><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>'
    data = epub(CHAPTERS, ("one",), {"META-INF/encryption.xml": lock + "</encryption>"})
    with pytest.raises(Unreadable, match="locked by its shop") as caught:
        read(data, "a.epub")
    assert caught.value.state is FileState.UNSUPPORTED


def test_hidden_fonts_do_not_lock_a_book() -> None:
    lock = '<encryption><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/>'
    data = epub(CHAPTERS, ("one",), {"META-INF/encryption.xml": lock + "</encryption>"})
    pages, _ = read(data, "a.epub")
    assert pages[0].label == "Chapter One"
