"""The gate before any parser: what a file is by its content, and whether it is opened at all.

Its ending only decides between texts, where the content cannot.
"""

import json
import os
import re
import stat
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from app.documents.archive import Archive
from app.documents.document import FileState, Unreadable
from app.documents.encoding import encoding_of
from app.documents.kinds import NAMES, Kind, kind_of_ending, one_of

MOST_FILE_BYTES = 200_000_000
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Names of streams in old Office files stand in UTF-16.
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
OLD_OFFICE = (
    ("WordDocument", "an old Word file", "docx"),
    ("Workbook", "an old Excel file", "xlsx"),
    ("PowerPoint Document", "an old PowerPoint file", "pptx"),
    ("__properties_version1.0", "an Outlook message", "eml"),
)
OFFICE_PARTS = (
    ("word/document.xml", Kind.DOCX),
    ("ppt/presentation.xml", Kind.PPTX),
    ("xl/workbook.xml", Kind.XLSX),
)
MEDIA_TYPES = {
    "application/epub+zip": Kind.EPUB,
    "application/vnd.oasis.opendocument.text": Kind.ODT,
    "application/vnd.oasis.opendocument.text-template": Kind.ODT,
    "application/vnd.oasis.opendocument.spreadsheet": Kind.ODS,
    "application/vnd.oasis.opendocument.spreadsheet-template": Kind.ODS,
    "application/vnd.oasis.opendocument.presentation": Kind.ODP,
}
PICTURES = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*")
OTHERS = (
    ((b"7z\xbc\xaf", b"Rar!", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"), "an archive"),
    ((b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"), "a program"),
    ((b"ID3", b"OggS", b"fLaC", b"RIFF", b"\x1aE\xdf\xa3"), "a sound or a film"),
    ((b"SQLite format 3",), "a database"),
    ((b"GGUF",), "a model"),
)
UNPACK = "unpack it and add the folder"
HTML_START = re.compile(
    rb"\s*(<!--.*?-->\s*|<\?xml[^>]*>\s*)*<(!doctype\s+html|html)\b", re.I | re.S
)
MAIL_FIELD = re.compile(
    r"(return-path|received|from|to|cc|subject|date|message-id|mime-version|delivered-to"
    r"|content-type|reply-to|x-[\w-]+): ?",
    re.IGNORECASE,
)
FIELD = re.compile(r"[!-9;-~]+:")


class Sniffed(NamedTuple):
    """`encoding` is that of a text, else empty; `notice` is for the user, or empty."""

    kind: Kind
    encoding: str = ""
    notice: str = ""


def open_regular(path: Path, root: Path | None) -> FileIO:
    """A file that may be read at all. With `root`, only one that lies in that folder wherever its
    links lead. Raises Unreadable."""
    name = path.name
    try:
        real = Path(os.path.realpath(path, strict=True))
        if root is not None and not real.is_relative_to(os.path.realpath(root)):
            raise Unreadable(
                FileState.UNSUPPORTED,
                f"{name} is a link that leads out of its folder: add the file that it leads to.",
            )
        # A pipe would let us wait until somebody writes into it.
        no_waiting = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(real, os.O_RDONLY | getattr(os, "O_BINARY", 0) | no_waiting)
    except OSError as error:
        raise Unreadable(
            FileState.FAILED, f"{name} cannot be opened: {error.strerror or error}."
        ) from error
    try:
        _check_facts(name, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return FileIO(descriptor)


def _check_facts(name: str, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise Unreadable(
            FileState.UNSUPPORTED, f"{name} is no file but a folder, a pipe or a device."
        )
    check_size(name, facts.st_size)


def check_size(name: str, num_bytes: int) -> None:
    """Raises Unreadable for what is not worth opening."""
    if num_bytes == 0:
        raise Unreadable(FileState.EMPTY, f"{name} is empty: it has 0 bytes.")
    if num_bytes > MOST_FILE_BYTES:
        raise Unreadable(
            FileState.TOO_LARGE,
            f"{name} has {num_bytes / 1e6:,.0f} MB; files up to"
            f" {MOST_FILE_BYTES / 1e6:,.0f} MB are read.",
        )


def sniff(data: bytes, name: str) -> Sniffed:
    """Raises Unreadable for what is not to be parsed."""
    check_size(name, len(data))
    ending = Path(name).suffix
    promised = kind_of_ending(ending)
    found = _by_magic(data, name) or _text(data, name, promised)
    if promised in (None, found.kind) or _is_text(found.kind) and _is_text(promised):
        return found
    return found._replace(
        notice=f"{name} ends in {ending} and is {one_of(found.kind)}: it was read as that."
    )


def _is_text(kind: Kind | None) -> bool:
    return kind in (Kind.TEXT, Kind.CODE, Kind.MARKDOWN, Kind.CSV, Kind.HTML, Kind.EML)


def _by_magic(data: bytes, name: str) -> Sniffed | None:
    if b"%PDF-" in data[:1024]:
        return Sniffed(Kind.PDF)
    if data.startswith(b"{\\rtf"):
        return Sniffed(Kind.RTF)
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return Sniffed(_of_archive(data, name))
    if data.startswith(OLE):
        raise _old_office(data, name)
    # A text may begin with the two letters of a BMP.
    is_bmp = data.startswith(b"BM") and data[6:10] == bytes(4)
    if data.startswith(PICTURES) or data[8:12] == b"WEBP" or is_bmp:
        return Sniffed(Kind.PICTURE)
    if data[4:8] == b"ftyp":
        if data[8:12] in (b"heic", b"heix", b"mif1", b"avif"):
            raise _unsupported(name, "a picture in HEIC or AVIF", "save it as JPEG or PNG")
        raise _unsupported(name, "a sound or a film")
    for starts, what in OTHERS:
        if data.startswith(starts):
            raise _unsupported(name, what, UNPACK if what == "an archive" else "")
    return None


def _of_archive(data: bytes, name: str) -> Kind:
    archive = Archive(data, name)
    for part, kind in OFFICE_PARTS:
        if archive.find(part):
            return kind
    if "mimetype" in archive.members:
        media_type = archive.read("mimetype")[:200].decode("ascii", "replace").strip()
        if media_type in MEDIA_TYPES:
            return MEDIA_TYPES[media_type]
    if archive.find("META-INF/container.xml"):
        return Kind.EPUB
    if archive.find("xl/workbook.bin"):
        raise _unsupported(name, "a binary Excel workbook", "save it as xlsx")
    raise _unsupported(name, "an archive", UNPACK)


def _old_office(data: bytes, name: str) -> Unreadable:
    if ENCRYPTED in data:
        return Unreadable(
            FileState.NEEDS_PASSWORD,
            f"{name} is protected by a password, and only Office can open it: save a copy without"
            " the password there and add that.",
        )
    for stream, what, ending in OLD_OFFICE:
        if stream.encode("utf-16-le") in data:
            return _unsupported(name, what, f"save it as {ending}")
    return _unsupported(name, "a file of an old program", "save it in a newer format")


def _unsupported(name: str, what: str, remedy: str = "") -> Unreadable:
    sentence = f"{name} is {what}, which is not read"
    return Unreadable(FileState.UNSUPPORTED, f"{sentence}: {remedy}." if remedy else f"{sentence}.")


def _text(data: bytes, name: str, promised: Kind | None) -> Sniffed:
    encoding = encoding_of(data)
    if encoding is None:
        if promised is not None and not _is_text(promised):
            raise Unreadable(
                FileState.DAMAGED,
                f"{name} is no {NAMES[promised]}, or its beginning is damaged: copy it again from"
                " where it came from.",
            )
        raise _unsupported(name, "of a kind that is not known here")
    start = data[:64_000].decode(encoding, "replace")
    return Sniffed(_kind_of_text(data, start, promised), encoding)


def _kind_of_text(data: bytes, start: str, promised: Kind | None) -> Kind:
    if promised in (None, Kind.TEXT, Kind.EML) and _is_mail(start):
        return Kind.EML
    if promised is not Kind.CODE and HTML_START.match(start.encode("utf-8", "replace")):
        return Kind.HTML
    if promised is Kind.NOTEBOOK:
        return Kind.NOTEBOOK if _is_notebook(data) else Kind.CODE
    if _is_text(promised) and promised is not Kind.EML:
        assert promised is not None
        return promised
    return Kind.TEXT


def _is_mail(start: str) -> bool:
    """Fields of a mail from the first line on, of them two that every mail has."""
    known = 0
    for line in start.lstrip("\ufeff\n").splitlines()[:40]:
        if not line.strip():
            break
        if line.startswith((" ", "\t")) and known:
            continue
        if not FIELD.match(line):
            # Mailboxes begin with a line of their own.
            if line.startswith("From ") and not known:
                continue
            return False
        known += bool(MAIL_FIELD.match(line))
    return known >= 2


def _is_notebook(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False
