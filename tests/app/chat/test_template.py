"""What a template can do is found out by trying; what it cannot is said in a sentence."""

from datetime import datetime

import pytest

from app.chat.message import Role
from app.chat.template import CHATML, ChatTemplate
from app.chat.turns import Turn
from engine.errors import TemplateError
from tests.fakes_text import FakeTokenizer

NOON = datetime(2026, 3, 1, 12, 0)
USER = Turn(Role.USER, "Hello")
SYSTEM = Turn(Role.SYSTEM, "Be brief.")


def template(source: str) -> ChatTemplate:
    return ChatTemplate(source, FakeTokenizer())


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("{% if %}", "cannot be read"),
        ("{{ messages[0].content", "cannot be read"),
        ("{{ raise_exception('Not today.') }}", "refuses this conversation: Not today. Choose"),
        ("{{ messages[5].content.x }}", "refuses this conversation"),
        ("{% for a in range(10**9) %}{% endfor %}", "refuses this conversation"),
        ("{{ strftime_now('%99999999d') }}{{ messages[0].content }}", "form that is not supported"),
        ("Always the same.", "leaves out the user's message"),
        ("{% for m in messages %}{% include m.content %}{% endfor %}", "refuses"),
        ("{" * 1_000_000, "cannot be read"),
    ],
)
def test_a_bad_template_is_a_sentence(source: str, sentence: str) -> None:
    with pytest.raises(TemplateError) as caught:
        template(source)
    assert sentence in str(caught.value)


def test_a_refused_or_ignored_system_prompt_moves_into_the_first_message() -> None:
    loop = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"
    refuses = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}"
    for source in (loop, refuses + loop):
        made = template(source)
        assert not made.supports_system
        assert made.render([SYSTEM, USER], NOON).text == "Be brief.\n\nHello"
    assert template(CHATML).supports_system


@pytest.mark.parametrize(("ending", "tag"), [("<think>\n", "<think>"), ("[THINK]", "[THINK]")])
def test_an_open_thinking_tag_at_the_end_is_noticed(ending: str, tag: str) -> None:
    assert template(CHATML.replace("assistant\\n", "assistant\\n" + ending)).opened_tag == tag


def test_a_closed_thinking_block_is_not_open() -> None:
    source = CHATML.replace("assistant\\n", "assistant\\n<think>\\n\\n</think>\\n\\n")
    assert template(source).opened_tag == ""


def test_a_template_that_wants_parts_gets_parts() -> None:
    source = (
        "{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}"
    )
    assert template(source).render([USER], NOON).text == "Hello"


def test_a_model_without_a_template_gets_chatml_if_it_knows_it() -> None:
    made = ChatTemplate.for_model(None, FakeTokenizer())
    assert made.notice == ""
    assert made.render([USER], NOON).text == (
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )


def test_any_other_model_without_a_template_gets_plain_lines_and_a_notice() -> None:
    made = ChatTemplate.for_model(" ", FakeTokenizer(["<s>"], end="<s>"))
    assert made.notice.startswith("This model brings no chat template")
    turns = [SYSTEM, USER, Turn(Role.ASSISTANT, "Hi"), USER]
    assert made.render(turns, NOON).text == (
        "Be brief.\n\nUser: Hello\nAssistant: Hi\nUser: Hello\nAssistant:"
    )


def test_the_clock_of_a_template_is_the_one_it_is_given() -> None:
    made = template("{{ strftime_now('%Y-%m-%d') }} {{ messages[0].content }}")
    assert made.render([USER], NOON).text == "2026-03-01 Hello"


def test_thinking_is_handed_over_apart_from_the_answer() -> None:
    made = template("{% for m in messages %}{{ m.content }}({{ m.reasoning_content }}){% endfor %}")
    turns = [USER, Turn(Role.ASSISTANT, "Hi", "hm")]
    assert made.render(turns, NOON).text == "Hello()Hi(hm)"


def test_a_space_that_the_model_and_the_template_write_is_written_once() -> None:
    plain = ChatTemplate.for_model(None, FakeTokenizer(["<s>"], end="<s>"))
    for answer in ("Hi", " Hi"):
        text = plain.render([USER, Turn(Role.ASSISTANT, answer), USER], NOON).text
        assert "Assistant: Hi\n" in text
