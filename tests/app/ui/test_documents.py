"""The user's own files in words."""

from app.documents.document import FileState
from app.documents.intake import AtWork
from app.documents.overview import Backlog, Cost
from app.documents.pace import Pace
from app.ui.documents import STATES, cost_in_words, name_of, page_words, progress


def test_every_state_has_its_words() -> None:
    assert set(STATES) == set(FileState)


def test_names_hide_nothing() -> None:
    assert name_of("/a/in\u202efdp.exe\n<b>") == "in\ufffdfdp.exe\ufffd<b>"
    assert name_of("/a/b\udcff.pdf") == "b\ufffd.pdf"
    assert name_of("/a/Café حبيبي 契約 👩‍👧") == "Café حبيبي 契約 👩‍👧"
    assert page_words(12, "12") == "page 12" and page_words(3, "iii") == "page 3 (iii)"
    assert page_words(1, "x" * 90) == f"page 1 ({'x' * 40}…)"


def test_progress_says_what_is_read_and_how_long_it_takes() -> None:
    pace = Pace(pages_per_s=10, bytes_per_s=1000)
    assert progress(None, Backlog(0, 0, pace), False)["is_reading"] is False
    at_work = AtWork("/a/report.pdf", num_read=14, num_pages=200, seconds=7)
    shown = progress(at_work, Backlog(12, 240_000, pace), False)
    assert shown["words"] == "12 files to read; now report.pdf, page 14 of 200; about 4 min left"
    assert shown["share"] == 14 / 200
    # The last one: by its own pace.
    last = progress(at_work, Backlog(1, 9, None), False)
    assert last["words"].endswith("about 2 min left")
    assert progress(AtWork("/a/b.txt"), Backlog(2, 9, None), True)["words"] == (
        "2 files to read; now b.txt; paused"
    )


def test_many_small_files_take_longer_than_their_bytes() -> None:
    pace = Pace(pages_per_s=10, bytes_per_s=1_000_000, seconds_per_file=0.01)
    shown = progress(AtWork("/a/b.txt"), Backlog(3_000, 90_000, pace), False)
    assert shown["words"].endswith("about 30 s left")
    assert progress(None, Backlog(1, 30_000_000, pace), False)["words"].endswith("30 s left")


def test_what_was_read_and_is_stored_has_no_bar_that_is_full() -> None:
    at_work = AtWork("/a/log.txt", num_read=900, num_pages=900, seconds=40)
    shown = progress(at_work, Backlog(1, 9, None), False)
    assert shown["words"] == ("1 file to read; now log.txt, all of 900 pages, which are stored now")
    assert shown["share"] is None


def test_what_reading_again_costs_is_said_before() -> None:
    words = cost_in_words(Cost(3, 120, 61.0), "/a/papers")
    assert words.startswith("Read 3 files with 120 pages of papers again? That takes about 61 s")
    assert "is not known yet" in cost_in_words(Cost(1, 0, None), "/a")
