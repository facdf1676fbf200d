"""An answer in a form is shown whole, says how it came out, and is nothing but text."""

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from time import perf_counter
from typing import Any

import pytest

from app.chat.answer_form import AnswerForm, MadeIn, Medium
from app.chat.message import Message, MessageState, Role
from app.ui.formed import MOST_ROWS, formed, forming, mark_of
from app.ui.render import live_rows, rows
from engine.guided.grammar import Grammar, GrammarKind
from tests.app.ui.test_page import XSS
from tests.fakes_chat import FakeAnswer

SCHEMA = AnswerForm.of_own(GrammarKind.JSON_SCHEMA, "{}")


def in_medium(medium: Medium) -> AnswerForm:
    return AnswerForm(Grammar(GrammarKind.LARK, "start: /a/"), "Mine", "", medium)


def answer(content: str, form: AnswerForm = SCHEMA, **changes: Any) -> Message:
    message = Message(
        message_id="m1",
        conversation_id="c",
        parent_id="u",
        role=Role.ASSISTANT,
        content=content,
        created_at=0.0,
        finish_reason="stop",
        made_in=MadeIn(form),
    )
    return replace(message, **changes)


class Reader(HTMLParser):
    """The elements of some HTML, and the texts in them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(markup: str) -> Reader:
    reader = Reader()
    reader.feed(markup)
    reader.close()
    return reader


OURS = {
    *("div", "p", "span", "button", "pre", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "ol", "li"),
}


@pytest.mark.parametrize("text", XSS)
def test_no_text_of_a_model_becomes_html(text: str) -> None:
    cells = json.dumps([{text: text}, {"b": [text]}], ensure_ascii=False)
    pairs = json.dumps({text: {text: [text]}}, ensure_ascii=False)
    listed = json.dumps([text], ensure_ascii=False)
    csv = '"' + text.replace('"', '""') + '",b\n' + '"' + text.replace('"', '""') + '",c'
    plain = in_medium(Medium.TEXT)
    for content, form in (
        (cells, SCHEMA),
        (pairs, SCHEMA),
        (listed, SCHEMA),
        (csv, in_medium(Medium.CSV)),
        (text, plain),
        (cells, plain),
    ):
        for shown in (formed(answer(content, form)), forming(answer(content[:-1], form))):
            reader = read(shown)
            assert set(reader.tags) <= OURS
            assert reader.attributes <= {"class", "id", "type", "scope", "tabindex"}
            assert "\n" not in shown


def test_hostile_words_of_a_form_and_a_fault_are_text() -> None:
    form = replace(SCHEMA, title="<img src=x>")
    shown = formed(answer("[]", form, made_in=MadeIn(form, True, "<script>")))
    assert set(read(shown).tags) <= OURS
    assert "<img src=x>" in html.unescape(shown) and "<script>" in html.unescape(shown)


def test_an_object_is_a_form_and_can_be_seen_as_json() -> None:
    shown = formed(answer('{"name": "Ann", "age": 3.0}'))
    assert "<dt>name</dt><dd>Ann</dd>" in shown
    raw = html.unescape(re.findall(r"<pre.*?>(.*?)</pre>", shown)[0])
    assert raw == '{\n  "name": "Ann",\n  "age": 3.0\n}'
    assert "Show as JSON" in shown and "Show as a form" in shown


@pytest.mark.parametrize(
    ("content", "form", "ending"),
    [
        ("{}", SCHEMA, "json"),
        ('[{"a": 1}]', in_medium(Medium.TEXT), "json"),
        ("words", in_medium(Medium.TEXT), "txt"),
        ("a,b\n1,2", in_medium(Medium.CSV), "csv"),
        ("- a", in_medium(Medium.MARKDOWN), "md"),
        ("flowchart TD\nA-->B", in_medium(Medium.MERMAID), "mmd"),
        ("SELECT 1", in_medium(Medium.SQL), "sql"),
    ],
)
def test_it_can_be_kept_as_a_file_of_its_kind(content: str, form: AnswerForm, ending: str) -> None:
    shown = formed(answer(content, form))
    assert f"Download .{ending}<" in shown
    assert 'id="formed-m1"' in shown


def test_a_diagram_is_drawn_when_it_is_whole() -> None:
    diagram = answer("flowchart TD\nA-->B", in_medium(Medium.MERMAID))
    assert formed(diagram).startswith("```mermaid\nflowchart TD\nA-->B\n```\n\n<div")
    cut = replace(diagram, finish_reason="grammar_incomplete")
    assert formed(cut).startswith("```\nflowchart")
    assert forming(replace(diagram, state=MessageState.STREAMING)).startswith("```\nflowchart")


def test_a_fence_in_code_does_not_end_it() -> None:
    shown = formed(answer("SELECT '```\n<b>'", in_medium(Medium.SQL)))
    assert shown.startswith("````sql\n")
    assert "<b>" not in shown.replace("````sql\nSELECT '```\n<b>'\n````", "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Follows the form"),
        ({"finish_reason": "grammar_incomplete"}, "Cut off before its end"),
        ({"state": MessageState.STOPPED}, "Cut off before its end"),
        ({"made_in": MadeIn(SCHEMA, True)}, "Follows the form; this was checked afterwards"),
        ({"made_in": MadeIn(SCHEMA, True, "3 at $.a")}, "Does not follow the form: 3 at $.a"),
    ],
)
def test_how_it_came_out_is_said_in_words(changes: dict[str, Any], words: str) -> None:
    message = answer("{}", **changes)
    assert mark_of(message) == words
    assert f"{words}\u00a0· JSON Schema" in html.unescape(formed(message))


def test_an_answer_that_did_not_begin_has_its_sentence_only() -> None:
    failed = answer("", state=MessageState.FAILED, notice="The grammar is gone.")
    (row,) = rows([failed])
    shown = row["content"][0]["text"]
    assert "gone" in shown and "formed" not in shown


def test_while_it_is_written_it_is_shown_as_far_as_it_is_there() -> None:
    streaming = answer('[{"a": "x"}, {"a": "ha', state=MessageState.STREAMING)
    (row,) = live_rows(FakeAnswer(message=streaming))
    shown = row["content"][0]["text"]
    assert "<td>x</td>" in shown and "<td>ha</td>" in shown
    assert "button" not in shown
    # It may also be seen before its job is.
    assert rows([streaming]) == [row]


def test_much_is_not_sent_at_once_and_its_figure_is_said() -> None:
    entries = [{"number": n, "name": f"name {n}"} for n in range(5_000)]
    shown = formed(answer(json.dumps(entries)))
    assert shown.count("<tr>") == MOST_ROWS + 1
    assert f"{MOST_ROWS} of 5,000 shown" in shown and "Show more" in shown
    assert re.search(r"Show all [\d,]+ characters", shown)
    assert len(shown) < 100_000
    begun = perf_counter()
    for _ in range(50):
        formed(answer(json.dumps(entries)))
    # Again and again while another answer is written below.
    assert perf_counter() - begun < 15


def test_a_long_answer_that_is_written_is_shown_by_its_end() -> None:
    shown = forming(answer('["' + "x" * 100_000 + "end", state=MessageState.STREAMING))
    assert len(shown) < 30_000 and shown.endswith("end</pre>")


def test_an_id_from_elsewhere_is_no_markup() -> None:
    shown = formed(answer("{}", message_id='"><img src=x>'))
    assert set(read(shown).tags) <= OURS
