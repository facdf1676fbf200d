"""A file of every kind that is read, each with words of its own."""

from collections.abc import Callable, Mapping
from email.message import EmailMessage

from tests.app.documents.office_files import (
    docx,
    epub,
    opendocument,
    paragraph,
    pptx,
    shape,
    word_table,
    xlsx,
)
from tests.app.documents.pdf_file import pdf_of

PDF_PAGES = 12


def _pdf(words: str) -> bytes:
    return pdf_of([[f"Page {number}", words] for number in range(PDF_PAGES)])


def _mail(words: str) -> bytes:
    made = EmailMessage()
    made["Subject"], made["From"] = "Grüße", "a@b.example"
    made.set_content(words)
    made.add_attachment(pdf_of([[words]]), maintype="application", subtype="pdf", filename="a.pdf")
    # A boundary is drawn by chance otherwise.
    made.set_boundary("between")
    return bytes(made)


def _sheet(words: str) -> bytes:
    return xlsx({"S": '<row r="1"><c r="A1" t="s"><v>0</v></c></row>'}, (words,))


MAKERS: Mapping[str, Callable[[str], bytes]] = {
    "pdf": _pdf,
    "docx": lambda words: docx(paragraph(words) + word_table(("a", "b"), (words, "1"))),
    "pptx": lambda words: pptx([shape("Title", "title"), shape(words)]),
    "xlsx": _sheet,
    "odt": lambda words: opendocument("text", f"<text:p>{words}</text:p>"),
    "epub": lambda words: epub({"one": f"<h1>One</h1><p>{words}"}, ("one",)),
    "rtf": lambda words: rb"{\rtf1\ansi " + words.encode() + rb"\par}",
    "html": lambda words: f"<!doctype html><h1>Title</h1><p>{words}".encode(),
    "md": lambda words: f"# Title\n\n{words}\n".encode(),
    "csv": lambda words: f"Name;Words\n1;{words}\n".encode(),
    "eml": _mail,
    "txt": lambda words: words.encode("utf-16"),
}


def file_of(number: int, words: str) -> tuple[str, bytes]:
    """The name and the bytes of one of many; the kinds take turns."""
    ending = list(MAKERS)[number % len(MAKERS)]
    return f"{number}.{ending}", MAKERS[ending](f"File {number}. {words}")
