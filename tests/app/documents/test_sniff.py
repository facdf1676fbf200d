"""The gate: what a file is, and what is not opened at all."""

import os
import socket
from pathlib import Path

import pytest

from app.documents import sniff as gate
from app.documents.document import FileState, Unreadable
from app.documents.kinds import Kind
from app.documents.sniff import open_regular, sniff
from tests.app.documents.office_files import docx, epub, opendocument, pptx, xlsx, zipped
from tests.app.documents.pdf_file import pdf_of

LOCKED = "EncryptedPackage".encode("utf-16-le")
OLD_WORD = "WordDocument".encode("utf-16-le")
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500)
MAIL = b"From: a@b.example\nTo: c@d.example\nSubject: hello\n\nwords\n"


def refused(data: bytes, name: str) -> tuple[FileState, str]:
    with pytest.raises(Unreadable) as caught:
        sniff(data, name)
    return caught.value.state, str(caught.value)


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        (pdf_of([["x"]]), "a.pdf", Kind.PDF),
        (b"\n\n" + pdf_of([["x"]]), "a", Kind.PDF),
        (docx(""), "a", Kind.DOCX),
        (pptx([]), "a", Kind.PPTX),
        (xlsx({}), "a", Kind.XLSX),
        (opendocument("text", ""), "a", Kind.ODT),
        (opendocument("spreadsheet", ""), "a", Kind.ODS),
        (opendocument("presentation", ""), "a", Kind.ODP),
        (epub({}, ()), "a", Kind.EPUB),
        (rb"{\rtf1 x}", "a", Kind.RTF),
        (b"<!DOCTYPE html><p>x", "a", Kind.HTML),
        (b"<!-- x --> <html>", "a.txt", Kind.HTML),
        (MAIL, "a", Kind.EML),
        (b"a;b\n1;2\n", "a.csv", Kind.CSV),
        (b"# x\n", "a.md", Kind.MARKDOWN),
        (b"import os\n", "a.py", Kind.CODE),
        (b"<html>{{ x }}", "a.vue", Kind.CODE),
        (b'{"cells": []}', "a.ipynb", Kind.NOTEBOOK),
        (b"From here on: nothing\n", "a", Kind.TEXT),
        (b"words", "README", Kind.TEXT),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_content_says_what_a_file_is(data: bytes, name: str, kind: Kind) -> None:
    assert sniff(data, name).kind is kind


def test_a_wrong_ending_is_said() -> None:
    assert sniff(pdf_of([["x"]]), "a.docx").notice == (
        "a.docx ends in .docx and is a PDF: it was read as that."
    )
    assert sniff(b"{\\rtf1 x}", "a.pdf").notice.startswith("a.pdf ends in .pdf and is an RTF text:")
    assert "is program text" in sniff(b"#!/bin/sh\nexit\n", "a.ipynb").notice


@pytest.mark.parametrize(
    ("data", "name", "state", "words"),
    [
        (b"", "a.pdf", FileState.EMPTY, "0 bytes"),
        (OLE + LOCKED, "a.docx", FileState.NEEDS_PASSWORD, "password"),
        (OLE + OLD_WORD, "a.doc", FileState.UNSUPPORTED, "save it as docx"),
        (bytes(4) + b"ftypheic" + bytes(99), "a.heic", FileState.UNSUPPORTED, "save it as JPEG"),
        (zipped({"a.txt": "x"}), "a.zip", FileState.UNSUPPORTED, "unpack it"),
        (b"\x7fELF" + bytes(99), "a", FileState.UNSUPPORTED, "a program"),
        (bytes(range(256)) * 4, "a", FileState.UNSUPPORTED, "not known here"),
        (bytes(range(256)) * 4, "a.pdf", FileState.DAMAGED, "no PDF"),
        (docx("")[:200], "a.docx", FileState.DAMAGED, "cut off"),
    ],
)  # fmt: skip
def test_what_is_not_parsed_has_a_state_and_a_sentence(
    data: bytes, name: str, state: FileState, words: str
) -> None:
    found, sentence = refused(data, name)
    assert found is state
    assert words in sentence and sentence.startswith(name) and sentence.endswith(".")


def test_only_a_regular_file_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "pipe", tmp_path / "socket", tmp_path, Path("/dev/zero")):
            with pytest.raises(Unreadable) as caught:
                open_regular(path, None)
            assert caught.value.state in (FileState.UNSUPPORTED, FileState.FAILED)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        open_regular(tmp_path / "gone.txt", None)


def test_an_empty_and_a_too_large_file_are_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.pdf").touch()
    with pytest.raises(Unreadable, match="0 bytes") as caught:
        open_regular(tmp_path / "empty.pdf", None)
    assert caught.value.state is FileState.EMPTY
    large = tmp_path / "large.txt"
    with open(large, "wb") as file:
        file.truncate(gate.MOST_FILE_BYTES + 1)
    with pytest.raises(Unreadable, match="has 200 MB; files up to 200 MB") as caught:
        open_regular(large, None)
    assert caught.value.state is FileState.TOO_LARGE


def test_a_link_is_followed_only_within_its_folder(tmp_path: Path) -> None:
    root, secret = tmp_path / "docs", tmp_path / "secret.txt"
    (root / "deep").mkdir(parents=True)
    secret.write_text("x")
    (root / "deep" / "note.txt").write_text("y")
    (root / "out.txt").symlink_to(secret)
    (root / "in.txt").symlink_to(root / "deep" / "note.txt")
    (root / "folder").symlink_to(tmp_path)
    for path in (root / "out.txt", root / "folder" / "secret.txt"):
        with pytest.raises(Unreadable, match="leads out of its folder"):
            open_regular(path, root)
    with open_regular(root / "in.txt", root) as file:
        assert file.read() == b"y"
