"""What is shown of a message, beside its text."""

import html
from dataclasses import replace
from typing import Any

import pytest

from app.chat.message import Message, MessageState, Role, Seen
from app.ui.render import figures, live_rows, rows, waiting_for
from app.ui.verbatim import show_verbatim
from engine.metrics import Timings
from tests.fakes_chat import FakeAnswer


def answer(content: str = "", **changes: Any) -> Message:
    return Message(
        message_id="m",
        conversation_id="c",
        parent_id="u",
        role=Role.ASSISTANT,
        content=content,
        created_at=0.0,
        **changes,
    )


def text_of(row: dict[str, Any]) -> str:
    text: str = row["content"][0]["text"]
    return text


def test_thinking_stands_apart_from_the_answer() -> None:
    thinking, said = rows([answer("Yes.", thinking="Hm <b>")])
    assert thinking["metadata"] == {"title": "Thinking", "status": "done"}
    assert text_of(thinking) == "Hm &#x0003C;b>"
    assert text_of(said) == "Yes."


@pytest.mark.parametrize(
    ("state", "note"),
    [
        (MessageState.STOPPED, "Stopped"),
        (MessageState.INTERRUPTED, "Interrupted: the app closed while this was written"),
    ],
)
def test_an_answer_that_did_not_end_by_itself_says_so(state: MessageState, note: str) -> None:
    (row,) = rows([answer("Half", state=state)])
    assert html.unescape(text_of(row)) == f'Half\n\n<p class="note">{note}</p>'


def test_an_answer_that_was_cut_names_the_limit_that_cut_it() -> None:
    cut = answer("Half", finish_reason="length")
    (by_the_limit,) = rows([replace(cut, timings={"finish": "max_tokens"})])
    assert "Ended at the longest answer allowed" in text_of(by_the_limit)
    full = replace(cut, timings={"finish": "context"}, notice="The context is full.")
    (by_the_context,) = rows([full])
    assert "longest answer" not in text_of(by_the_context)
    assert "The context is full." in html.unescape(text_of(by_the_context))


def test_a_failure_shows_its_sentence() -> None:
    (row,) = rows([answer(state=MessageState.FAILED, notice="The <disk> is full.")])
    assert html.unescape(text_of(row)) == '<p class="note failed">The <disk> is full.</p>'
    assert "<disk>" not in text_of(row)


def test_a_note_after_an_open_fence_is_not_code() -> None:
    for content in ("```python\nprint(1)", "Look:\n\n```\na\n```\n\n```sh\nls\n"):
        (row,) = rows([answer(content, state=MessageState.STOPPED)])
        assert '\n```\n\n<p class="note">' in text_of(row)


def test_a_closed_fence_is_left_alone() -> None:
    (row,) = rows([answer("```\na\n```", state=MessageState.STOPPED)])
    assert text_of(row).startswith('```\na\n```\n\n<p class="note">')


def test_the_figures_are_those_that_were_measured() -> None:
    timings = Timings(prefilled_tokens=32, cached_tokens=380, ttft_ms=412, tpot_ms=32.05)
    assert figures(answer(timings=timings.as_json())) == (
        "31.2 tokens/s\u00a0· 32 of 412 tokens read, 380 still in memory\u00a0· first token 0.4 s"
    )
    assert figures(answer(timings={"prefilled_tokens": 12, "of_a_later_version": 1})) == (
        "12 tokens read"
    )
    assert figures(answer()) == ""


def test_waiting_reading_and_writing_are_told_apart() -> None:
    empty = answer(state=MessageState.STREAMING)
    waits = [
        FakeAnswer(message=empty, num_prompt_tokens=4000, num_prompt_tokens_read=read)
        for read in (0, 1024, 4000)
    ]
    assert [waiting_for(one) for one in waits] == [
        "Waiting for the model…",
        "Reading your message… 1,024 of 4,000 tokens",
        "Writing…",
    ]


def test_a_running_answer_shows_thinking_then_text() -> None:
    thinking = answer(state=MessageState.STREAMING, thinking="Hm")
    (row,) = live_rows(FakeAnswer(message=thinking))
    assert row["metadata"]["status"] == "pending"
    first, second = live_rows(
        FakeAnswer(message=answer("Yes", state=MessageState.STREAMING, thinking="Hm"))
    )
    assert (first["metadata"]["status"], text_of(second)) == ("done", "Yes")


def test_a_running_answer_shows_what_is_wrong_with_storing_it() -> None:
    said: dict[str, Any] = {"notice": "Not stored yet: no room", "state": MessageState.STREAMING}
    note = f'<p class="note">{show_verbatim("Not stored yet: no room")}</p>'
    (row,) = live_rows(FakeAnswer(message=answer("```\nx", **said)))
    assert text_of(row) == f"```\nx\n```\n\n{note}"
    thoughts, below = live_rows(FakeAnswer(message=answer(thinking="Hm", **said)))
    assert thoughts["metadata"]["status"] == "pending"
    assert text_of(below) == note


def test_what_came_back_is_told_with_its_place_and_time() -> None:
    timings = Timings(
        prefilled_tokens=412,
        cached_tokens=98,
        restored_tokens=7680,
        restored_from="disk",
        restore_ms=95.2,
        is_reproducible=True,
    )
    assert figures(answer(timings=timings.as_json())) == (
        "412 of 8,190 tokens read, 98 still in memory, 7,680 restored from disk in 95 ms"
        "\u00a0· reproducible"
    )
    from_ram = Timings(prefilled_tokens=1, restored_tokens=9, restored_from="ram", restore_ms=1200)
    assert "9 restored from RAM in 1.2 s" in figures(answer(timings=from_ram.as_json()))


def test_the_mark_stands_before_the_first_message_that_is_sent() -> None:
    messages = [
        replace(answer(f"{number}"), message_id=f"m{number}", role=Role.USER) for number in range(4)
    ]
    shown = rows(messages, Seen(first_id="m2"))
    assert [index for index, row in enumerate(shown) if "no longer sees" in str(row)] == [2]
    assert len(shown) == 5
    assert len(rows(messages, Seen(first_id="elsewhere"))) == len(rows(messages)) == 4


def test_a_summary_is_shown_as_it_is() -> None:
    (mark, _) = rows([answer("x")], Seen(first_id=answer().message_id, summary="<b>!</b>"))
    assert show_verbatim("<b>!</b>") in mark["content"][0]["text"]


def test_what_comes_before_an_answer_is_told_in_its_place() -> None:
    doing = FakeAnswer(message=answer(state=MessageState.STREAMING), doing="Summing up 2 turns…")
    assert "Summing" in waiting_for(doing)


def test_an_id_from_elsewhere_stays_in_its_address() -> None:
    measured = replace(answer("Yes.", timings={"prefilled_tokens": 12}), message_id='"><img src=x>')
    (row,) = rows([measured])
    assert "#saw-" in text_of(row) and "<img" not in text_of(row)
