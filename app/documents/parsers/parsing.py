"""One file from its bytes to its pages, whatever it is: gate, parser, and what all share."""

import csv
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from app.documents.document import Facts, FileState, Page, PageFlag, Unreadable
from app.documents.kinds import DRAWN, NAMES, Kind
from app.documents.parsers import (
    csv_table,
    docx,
    eml,
    epub,
    html,
    markdown,
    notebook,
    opendocument,
    pdf,
    picture,
    pptx,
    rtf,
    text,
    xlsx,
)
from app.documents.parsers.broken import BY_LIBRARIES
from app.documents.parsers.source import Parser, Source
from app.documents.sniff import sniff

PARSERS: Mapping[Kind, Parser] = {
    Kind.PDF: pdf.read,
    Kind.DOCX: docx.read,
    Kind.PPTX: pptx.read,
    Kind.XLSX: xlsx.read,
    Kind.ODT: opendocument.read_text,
    Kind.ODS: opendocument.read_sheets,
    Kind.ODP: opendocument.read_slides,
    Kind.EPUB: epub.read,
    Kind.RTF: rtf.read,
    Kind.HTML: html.read,
    Kind.MARKDOWN: markdown.read,
    Kind.CSV: csv_table.read,
    Kind.EML: eml.read,
    Kind.NOTEBOOK: notebook.read,
    Kind.CODE: text.read,
    Kind.TEXT: text.read,
    Kind.PICTURE: picture.read,
}
BROKEN = (
    *BY_LIBRARIES,
    AssertionError,
    csv.Error,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
MOST_DEPTH = 5
"""Of files in files: a mail in a mail in a mail."""


def parse(data: bytes, name: str, password: str = "", depth: int = 0) -> Iterator[Page | Facts]:
    """Facts first where the number of pages is known beforehand, then the pages, numbered without
    gaps, then the Facts. Raises Unreadable, perhaps after pages."""
    kind, encoding, notice = sniff(data, name)
    source = Source(
        data=data, name=name, kind=kind, encoding=encoding, password=password, depth=depth
    )
    facts = Facts(kind=kind.value, num_pages=0)
    number = pictures = 0
    has_text = False
    try:
        for part in PARSERS[kind](source):
            if isinstance(part, Facts):
                facts = part
                if not number:
                    yield replace(facts, notice=notice)
                continue
            number += 1
            has_text = has_text or bool(part.text)
            pictures += PageFlag.PICTURE_ONLY in part.flags
            yield replace(part, number=number)
    except BROKEN as error:
        read = f"could be read up to page {number:,}" if number else "could not be read at all"
        raise Unreadable(
            FileState.DAMAGED,
            f"{name} is damaged: this {NAMES[kind]} {read}. Open it with the program that made it"
            " and save it anew.",
        ) from error
    # Of what lies in another file the pages cannot be drawn, so OCR has nothing to read.
    if not has_text and not (pictures and kind in DRAWN and depth == 0):
        raise Unreadable(FileState.NO_TEXT, _no_text(name, number))
    notices = " ".join(sentence for sentence in (notice, facts.notice) if sentence)
    yield replace(facts, num_pages=number, notice=notices)


def _no_text(name: str, num_pages: int) -> str:
    if num_pages < 2:
        return f"{name} has no text."
    return f"{name} has no text on any of its {num_pages:,} pages."
