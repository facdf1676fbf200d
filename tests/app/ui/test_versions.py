"""The way through the answers to one message ends at both ends."""

import gradio as gr
import pytest

from app.ui.versions import Versions, beside

SIBLINGS = ("a", "b", "c")


@pytest.mark.parametrize(
    ("shown", "step", "wanted"),
    [("a", 1, "b"), ("b", -1, "a"), ("a", -1, "a"), ("c", 1, "c")],
)
def test_it_goes_one_further_and_not_beyond_the_end(shown: str, step: int, wanted: str) -> None:
    assert beside(SIBLINGS, shown, step) == wanted


def test_it_is_shown_where_there_are_several() -> None:
    with gr.Blocks(analytics_enabled=False):
        versions = Versions()
    shown = versions.show(SIBLINGS, "b")
    assert shown[versions.words] == "Answer 2 of 3" and shown[versions.row]["visible"]
    assert shown[versions.before]["interactive"] and shown[versions.after]["interactive"]
    shown = versions.show(SIBLINGS, "c")
    assert not shown[versions.after]["interactive"]
    for alone in (("a",), ()):
        assert not versions.show(alone, "a")[versions.row]["visible"]
