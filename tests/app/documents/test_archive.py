"""Archives that would become too much, or reach out, are refused with the figures."""

import io
import zipfile

import pytest

from app.documents import archive as gate
from app.documents.archive import Archive
from app.documents.document import FileState, Unreadable
from tests.app.documents.office_files import zipped

LARGE = gate.LARGE_MEMBER_BYTES + 1


def refused(data: bytes) -> tuple[FileState, str]:
    with pytest.raises(Unreadable) as caught:
        Archive(data, "a.docx")
    return caught.value.state, str(caught.value)


def test_a_bomb_is_refused_with_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MOST_UNPACKED_BYTES", 2_000_000)
    data = zipped({"a.xml": bytes(1_500_000), "b.xml": bytes(1_500_000)})
    state, sentence = refused(data)
    assert state is FileState.TOO_LARGE
    assert "0.0 MB and unpacks to 3 MB, more than the limit of 2 MB" in sentence


def test_a_member_that_grows_too_much_is_refused() -> None:
    state, sentence = refused(zipped({"a.xml": bytes(LARGE)}))
    assert state is FileState.TOO_LARGE
    assert "times as much; at most 200 times is taken" in sentence


def test_an_archive_that_lies_about_its_sizes_gives_out_no_more_than_it_says() -> None:
    data = bytearray(zipped({"word/document.xml": bytes(5_000_000)}))
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = (100).to_bytes(4, "little")
    archive = Archive(bytes(data), "a.docx")
    with archive.open("word/document.xml") as stream, pytest.raises(zipfile.BadZipFile):
        while piece := stream.read(1000):
            assert len(piece) <= 100


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MOST_MEMBERS", 10)
    state, sentence = refused(zipped({f"{number}": b"" for number in range(11)}))
    assert (state, "11 parts" in sentence) == (FileState.TOO_LARGE, True)


@pytest.mark.parametrize(
    "name", ["../a.xml", "word/../../a.xml", "/etc/a.xml", "C:/a.xml", "..\\a"]
)
def test_a_name_that_points_out_of_the_archive_is_refused(name: str) -> None:
    state, sentence = refused(zipped({name: b"x"}))
    assert (state, "points out of it" in sentence) == (FileState.DAMAGED, True)


def test_a_locked_member_asks_for_its_password() -> None:
    data = bytearray(zipped({"a.xml": b"x"}))
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 8] |= 1
    assert refused(bytes(data))[0] is FileState.NEEDS_PASSWORD


def test_what_is_no_archive_is_damaged() -> None:
    assert refused(b"PK\x03\x04" + bytes(100))[0] is FileState.DAMAGED


def test_an_archive_within_is_a_part_like_any_other() -> None:
    """A presentation carries the workbook of each of its charts."""
    inner = io.BytesIO(zipped({"x": b"y"})).getvalue()
    archive = Archive(zipped({"ppt/embeddings/a.xlsx": inner, "b.xml": b"z"}), "a.pptx")
    assert archive.read("b.xml") == b"z"
    assert archive.find("PPT/embeddings/A.xlsx") == "ppt/embeddings/a.xlsx"
    assert archive.find("none") is None
