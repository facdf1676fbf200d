"""Texts and PDF files that are made for measuring."""

from pathlib import Path

from app.bench.docs_files import Texts, write_pdf
from app.documents.document import Facts, Page
from app.documents.parsers.parsing import parse


def test_the_same_seed_gives_the_same_texts() -> None:
    one, other = Texts(), Texts()
    assert [one.page(50) for _ in range(3)] == [other.page(50) for _ in range(3)]
    assert one.page(50) != one.page(50)


def test_a_page_has_its_words_in_sentences_and_paragraphs() -> None:
    page = Texts().page(600)
    assert len(page.split()) == 600
    assert page.endswith(".") and page.count("\n\n") > 2


def test_small_words_are_common_and_most_are_rare() -> None:
    texts = Texts()
    words = texts.page(20_000).lower().replace(".", "").split()
    assert words.count(texts.words[0]) > 100
    assert 2_000 < len(set(words)) < 15_000


def test_a_question_has_words_of_its_text() -> None:
    texts = Texts()
    page = texts.page(100)
    asked = texts.question(page, 3).removesuffix("?").split()
    assert {asked[3], asked[5], asked[7]} <= set(page.lower().replace(".", "").split())


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    texts = Texts()
    written = [texts.page(200) for _ in range(5)]
    write_pdf(tmp_path / "a.pdf", written)
    parts = list(parse((tmp_path / "a.pdf").read_bytes(), "a.pdf"))
    pages = [part for part in parts if isinstance(part, Page)]
    assert isinstance(parts[-1], Facts) and parts[-1].num_pages == 5
    for page, text in zip(pages, written, strict=True):
        assert text.split()[:200] == page.text.split()[6:206]
    # The fifth one has a table below.
    assert len(pages[4].text.split()) == 6 + 200 + 20
