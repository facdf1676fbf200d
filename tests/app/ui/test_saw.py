"""The sheet that shows a prompt: every character as it is, and where its tokens came from."""

from typing import Any

from app.chat.message import Message, Role, Seen
from app.chat.sight import Sight, Stretch
from app.ui.saw import sheet
from engine.metrics import Timings


def sight(timings: Timings | None = None, **changes: Any) -> Sight:
    seen = changes.pop("seen", Seen(num_tokens=8190, digest="d"))
    answer = Message(
        message_id="a",
        conversation_id="c",
        parent_id="u",
        role=Role.ASSISTANT,
        content="Yes",
        created_at=0.0,
        model="A <model>",
        timings={} if timings is None else timings.as_json(),
        seen=seen,
    )
    facts: dict[str, Any] = {
        "answer": answer,
        "stretches": (Stretch("<|im_start|>", True), Stretch("user\n\n<b>Hi</b> </pre>", False)),
        "num_tokens": 8190,
        "has_summary": False,
        "doubt": "",
    }
    return Sight(**facts | changes)


def test_nothing_of_a_prompt_acts() -> None:
    shown = sheet(sight())
    assert shown.count("<b>") == 1
    assert shown.count("</pre>") == 1
    assert "A &#x0003C;model" in shown


def test_every_source_is_named_with_its_tokens() -> None:
    timings = Timings(
        prefilled_tokens=412,
        cached_tokens=98,
        restored_tokens=7680,
        restored_from="disk",
        restore_ms=95.2,
    )
    shown = sheet(sight(timings))
    assert "<b>98</b> were still in the model’s memory" in shown
    assert "<b>7,680</b> came back from the disk in 95 ms" in shown
    assert "<b>412</b> were read" in shown
    assert 'class="read" style="width:5.03%"' in shown


def test_an_answer_that_goes_on_from_another_one_says_so() -> None:
    shown = sheet(sight(Timings(prefilled_tokens=3, begun_tokens=1200)))
    assert "the first 1,200 tokens of its answer" in shown
    assert "goes on from another one" not in sheet(sight(Timings(prefilled_tokens=3)))


def test_what_was_left_out_and_what_is_in_doubt_is_said() -> None:
    cut = Seen(num_tokens=10, digest="d", first_id="m")
    assert "The oldest turns of the conversation were left out." in sheet(sight(seen=cut))
    assert "a summary of them stands" in sheet(sight(seen=cut, has_summary=True))
    assert "The model has changed." in sheet(sight(doubt="The model has changed.")).replace(
        "&#x0002E;", "."
    )
