"""Mails: who wrote what to whom, and what was attached, each by its own parser."""

import email
import email.policy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from email.message import EmailMessage

from app.documents.blocks import Block, paginate
from app.documents.cleaning import one_line
from app.documents.document import Facts, FileState, Page, Unreadable
from app.documents.encoding import decode
from app.documents.kinds import Kind
from app.documents.markup import page_tree
from app.documents.parsers import html
from app.documents.parsers.source import Source

FIELDS = ("From", "To", "Cc", "Date", "Subject")
MOST_DEPTH = 5
"""Of a mail in a mail in a mail."""
MOST_ATTACHMENTS = 100


def read(source: Source) -> Iterator[Page | Facts]:
    message = email.message_from_bytes(source.data, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    mail = _Mail(source)
    yield from mail.pages(message, source.depth)
    yield Facts(kind=Kind.EML, num_pages=0, title=_field(message, "Subject"), notice=mail.notice())


@dataclass(slots=True)
class _Mail:
    """One mail with all that is in it. Owned by `read`."""

    source: Source
    number: int = 1
    attachments: int = 0
    unread: list[str] = field(default_factory=list)

    def notice(self) -> str:
        if not self.unread:
            return ""
        count = len(self.unread)
        are = "attachment was" if count == 1 else "attachments were"
        names = ", ".join(self.unread[:5]) + (", ..." if count > 5 else "")
        return f"{count} {are} not read: {names}."

    def pages(self, message: EmailMessage, depth: int) -> Iterator[Page]:
        label = (
            f"Forwarded: {_field(message, 'Subject')}" if depth > self.source.depth else "Message"
        )
        bodies, attached = _divided(message)
        yield from self._numbered(paginate(_blocks(message, bodies, label), "Part"))
        for part in attached:
            yield from self._attached(part, depth + 1)

    def _numbered(self, pages: Iterator[Page]) -> Iterator[Page]:
        for page in pages:
            yield replace(page, number=self.number)
            self.number += 1

    def _attached(self, part: EmailMessage, depth: int) -> Iterator[Page]:
        name = one_line(part.get_filename() or "") or part.get_content_type()
        self.attachments += 1
        if depth > MOST_DEPTH or self.attachments > MOST_ATTACHMENTS:
            self.unread.append(name)
        elif part.get_content_type() == "message/rfc822":
            for inner in part.iter_parts():
                if isinstance(inner, EmailMessage):
                    yield from self.pages(inner, depth)
        else:
            yield from self._numbered(self._file(part, name, depth))

    def _file(self, part: EmailMessage, name: str, depth: int) -> Iterator[Page]:
        # Parsers know of each other only here.
        from app.documents.parsers.parsing import parse

        data = part.get_payload(decode=True)
        try:
            for page in parse(data if isinstance(data, bytes) else b"", name, depth=depth):
                if isinstance(page, Page):
                    yield replace(page, label=f"{name}, {page.label}")
        except Unreadable as problem:
            if problem.state is FileState.TOO_LARGE:
                raise
            self.unread.append(name)


def _field(message: EmailMessage, name: str) -> str:
    # A field of a strange form is still what was written.
    try:
        return one_line(str(message.get(name, "")))
    except (ValueError, TypeError, LookupError, AttributeError):
        return one_line(str(dict(message.raw_items()).get(name, "")))


def _blocks(message: EmailMessage, bodies: list[EmailMessage], label: str) -> Iterator[Block]:
    heads = [f"{name}: {value}" for name in FIELDS if (value := _field(message, name))]
    yield Block(text="\n".join(heads), begins=label)
    for body in bodies:
        payload = body.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        text = decode(data, body.get_content_charset())
        if body.get_content_type() == "text/html":
            root = page_tree(text, label)
            yield from () if root is None else html.blocks(root)
        else:
            for paragraph in text.replace("\r\n", "\n").split("\n\n"):
                yield Block(text=paragraph)


def _divided(message: EmailMessage) -> tuple[list[EmailMessage], list[EmailMessage]]:
    """The texts of the mail itself, and what is attached. Of one text in several forms only the
    plain one counts."""
    if message.get_content_type() == "message/rfc822":
        return [], [message]
    if not message.is_multipart():
        is_text = message.get_content_maintype() == "text" and not message.is_attachment()
        return ([message], []) if is_text else ([], [message])
    parts = [part for part in message.iter_parts() if isinstance(part, EmailMessage)]
    if message.get_content_subtype() == "alternative":
        plain = [part for part in parts if part.get_content_type() == "text/plain"]
        parts = plain[:1] or parts[-1:]
    bodies: list[EmailMessage] = []
    attached: list[EmailMessage] = []
    for part in parts:
        if part.is_attachment():
            attached.append(part)
            continue
        more_bodies, more_attached = _divided(part)
        bodies += more_bodies
        attached += more_attached
    return bodies, attached
