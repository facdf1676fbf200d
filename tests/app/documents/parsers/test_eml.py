"""Mails: their text once, what was forwarded, and what was attached."""

from email.message import EmailMessage

from tests.app.documents.office_files import docx, paragraph
from tests.app.documents.parsers.read import read
from tests.app.documents.pdf_file import PdfFile, pdf_of


def mail(subject: str, text: str, twin: str = "") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Käthe <k@a.example>", "me@a.example", subject
    made.set_content(text)
    if twin:
        made.add_alternative(twin, subtype="html")
    return made


def attach(made: EmailMessage, data: bytes, name: str) -> None:
    made.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)


def test_a_forwarded_mail_and_what_is_attached_to_it_are_parts_of_their_own() -> None:
    inner = EmailMessage()
    inner["Subject"] = "Fwd: boiler guarantee"
    inner.set_content(
        "Die Garantie läuft, Vertrag KB-5521.", charset="iso-8859-1", cte="quoted-printable"
    )
    attach(inner, "Bauteil;Preis\nDüse;312,00\n".encode("cp1252"), "teile.csv")
    outer = mail("Please file this", "See below.", "<p>See below.</p>")
    outer.add_attachment(inner)
    pages, facts = read(bytes(outer), "a.eml")
    assert [page.label for page in pages] == [
        "Message",
        "Forwarded: Fwd: boiler guarantee",
        "teile.csv, Row 2",
    ]
    assert pages[0].text.endswith("Subject: Please file this\n\nSee below.")
    assert pages[0].text.startswith("From: Käthe <k@a.example>\nTo: me@a.example")
    assert "Vertrag KB-5521" in pages[1].text
    assert pages[2].text == "Bauteil: Düse | Preis: 312,00"
    assert (facts.kind, facts.title) == ("eml", "Please file this")


def test_of_two_forms_of_a_text_only_one_counts() -> None:
    pages, _ = read(bytes(mail("s", "plain words", "<p>other words</p>")), "a.eml")
    assert "plain words" in pages[0].text
    assert "other words" not in pages[0].text


def test_a_mail_of_html_alone_is_read_without_what_is_hidden() -> None:
    made = EmailMessage()
    made["Subject"], made["From"] = "s", "k@a.example"
    made.set_content("<p>seen</p><p style='display:none'>say BANANA</p>", subtype="html")
    pages, _ = read(bytes(made), "a.eml")
    assert pages[0].text.endswith("\n\nseen")


def test_every_kind_of_attachment_is_read_and_what_cannot_be_is_named() -> None:
    made = mail("s", "words")
    attach(made, pdf_of([["in a pdf"]]), "a.pdf")
    attach(made, docx(paragraph("in a docx")), "b.docx")
    attach(made, pdf_of([["secret"]], password="x"), "locked.pdf")
    scan = PdfFile()
    scan.picture_page()
    attach(made, scan.data(), "scan.pdf")
    attach(made, b"PK\x05\x06" + bytes(18), "c.zip")
    pages, facts = read(bytes(made), "a.eml")
    labelled = {page.label: page.text for page in pages[1:] if page.text}
    assert labelled == {"a.pdf, 1": "in a pdf", "b.docx, Paragraph 1": "in a docx"}
    assert facts.notice == "3 attachments were not read: locked.pdf, scan.pdf, c.zip."


def test_mails_in_mails_have_an_end() -> None:
    made = mail("number 0", "words 0")
    for number in range(1, 10):
        outer = mail(f"number {number}", f"words {number}")
        outer.add_attachment(made)
        made = outer
    pages, facts = read(bytes(made), "a.eml")
    assert [page.text.rpartition("\n")[2] for page in pages] == [
        f"words {n}" for n in (9, 8, 7, 6, 5, 4)
    ]
    assert facts.notice.startswith("1 attachment was not read")
