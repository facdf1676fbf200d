"""What is said while a document is read from its beginning to its end."""

from dataclasses import replace

import pytest

from app.chat.whole_progress import WholeProgress
from app.documents.whole import Whole
from app.documents.whole_text import WholeText
from tests.app.documents.test_grounds import quotation


@pytest.fixture
def progress() -> WholeProgress:
    whole = Whole(sha256="1", paths=("/a/lease.pdf",), title="", num_pages=4, fence="f")
    parts = [replace(quotation(), page=page, page_to=page, text="x" * 100) for page in (1, 2, 3, 4)]
    return WholeProgress(WholeText(whole, tuple(parts)), 4_000)


def test_pages_tokens_and_the_time_that_is_left_are_said(progress: WholeProgress) -> None:
    lead = "Reading lease.pdf from its beginning to its end: "
    assert progress.after(500, 10.0) == f"{lead}page 1 of 4, 500 of 4,000 tokens."
    assert progress.after(1_500, 20.0) == (
        f"{lead}page 2 of 4, 1,500 of 4,000 tokens. About 25 s left."
    )
    assert progress.after(3_500, 40.0) == (
        f"{lead}page 4 of 4, 3,500 of 4,000 tokens. About 5 s left."
    )


def test_what_was_held_before_does_not_make_it_seem_faster(progress: WholeProgress) -> None:
    assert "left" not in progress.after(3_000, 10.0)
    assert progress.after(3_200, 20.0).endswith("About 40 s left.")


def test_nothing_is_said_before_it_is_begun_and_after_its_end(progress: WholeProgress) -> None:
    assert progress.after(0) == progress.after(4_000) == progress.after(4_100) == ""
