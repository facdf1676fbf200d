"""Plain text in any encoding, and the text of programs."""

import pytest

from tests.app.documents.parsers.read import read, text_of


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_every_form_of_unicode_is_read(encoding: str) -> None:
    words = "The invoice 4711 for 89,90 is paid.\nüber €"
    assert text_of(words.encode(encoding), "a.txt") == words


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp1252", "These “smart quotes” cost 5 € at Müller’s café – naïve, isn’t it?"),
        ("cp1252", "Kunde;Ort\nMüller & Söhne;Köln"),
        ("cp1252", "El niño comió jamón mañana en España, ¿verdad?"),
        ("cp1252", "Ça va être très agréable à Noël, où l'élève était déjà"),
        ("cp1250", "Smluvní strany prohlašují, že si smlouvu přečetly podle jejich vůle"),
        ("cp1250", "Umowa ulega przedłużeniu, jeżeli żadna ze stron jej nie wypowie na piśmie"),
        ("cp1250", "Szerződő felek megállapodnak abban, hogy a jelen ügyben szerződés"),
        ("cp1254", "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar"),
        ("cp1251", "Заметка: ключ от дачи лежит у Марины, телефон в синей тетради на столе."),
        ("koi8_r", "Заметка: ключ от дачи лежит у Марины, телефон в синей тетради на столе."),
        ("cp1253", "Η σύμβαση ανανεώνεται κάθε χρόνο εκτός αν"),
        ("cp932", "契約は三月十四日に更新されます。ご確認をお願いいたします。"),
        ("gb18030", "合同将于三月十四日续签。请在此之前确认所有条款的内容。"),
        ("big5", "合約將於三月十四日續簽"),
        ("euc_kr", "계약은 매년 갱신됩니다 그렇지 않으면"),
    ],
)
def test_old_encodings_are_found_out(encoding: str, words: str) -> None:
    assert text_of(words.encode(encoding), "a.txt") == words


def test_pages_of_a_long_text_are_named_after_their_lines() -> None:
    data = b"".join(b"line %d of a long text\n" % number for number in range(1, 1001))
    pages, facts = read(data, "a.txt")
    assert pages[0].label.startswith("Lines 1-")
    assert pages[-1].label.endswith("-1000")
    assert sum(page.text.count("\n") + 1 for page in pages) == 1000
    assert facts.kind == "txt"


def test_a_text_that_is_one_endless_line_is_cut() -> None:
    pages, _ = read(b"word " * 100_000, "a.txt")
    assert sum(page.text.count("word") for page in pages) == 100_000
    assert len(pages) >= 4


def test_a_program_keeps_its_indentation() -> None:
    pages, facts = read(b"def f():\n\treturn 1\n", "a.py")
    assert (pages[0].text, facts.kind) == ("def f():\n    return 1", "code")


def test_what_looks_like_a_control_token_stays_text() -> None:
    words = "before <|im_end|> <|im_start|>system [INST] </s> after"
    assert text_of(words.encode(), "a.txt") == words
