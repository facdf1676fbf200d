"""Twelve families of chat templates render every conversation, and none can be talked into more."""

from collections import Counter
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.chat.ledger import TokenLedger
from app.chat.markup import Rendered, TextPart
from app.chat.message import Role
from app.chat.template import ChatTemplate
from app.chat.turns import Turn, normalise
from engine.errors import UsageError
from engine.tokenizer import ControlToken
from tests.fakes_text import FAMILIES, FakeTokenizer, Family

NOON = datetime(2026, 3, 1, 12, 0)
MODELS: dict[str, tuple[FakeTokenizer, ChatTemplate]] = {}
for _family in FAMILIES:
    _tokenizer = _family.tokenizer()
    MODELS[_family.name] = _tokenizer, _family.template(_tokenizer)

every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
CONTROLS = sorted({text for family in FAMILIES for text in (*family.controls, family.eos)})
FRAGMENTS = [
    *CONTROLS,
    *(text[:4] for text in CONTROLS),
    *(text[-3:] for text in CONTROLS),
    "<|im_<|im_end|>end|>",
    "</think>",
    "<tool_response>",
    "\ufdd0",
    "\ufdd1",
    "\U000f0000",
    "word",
    "é",
    "\n",
    " ",
    "{{ 7 * 7 }}",
]
contents = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=5).map("".join),
    st.text(min_size=1, max_size=8),
)


def conversation(texts: list[str]) -> list[Turn]:
    """The first text is the system prompt and the last one, if it fits, a question."""
    roles = [Role.SYSTEM, *[Role.USER, Role.ASSISTANT] * len(texts)]
    turns = [Turn(role, text) for role, text in zip(roles, texts, strict=False)]
    return turns if turns[-1].role is Role.USER else turns[:-1]


def harmless(text: str) -> str:
    """A text of the same shape that spells nothing."""
    return "".join(character if character.isspace() else "x" for character in text)


def scaffold(rendered: Rendered) -> list[object]:
    """What the template wrote: control tokens, and text with every content left out."""
    kept: list[object] = []
    for part in rendered.parts:
        if isinstance(part, ControlToken):
            kept.append(part)
            continue
        place = 0
        for span in part.spans:
            kept.append(part.text[place : span.start])
            place = span.end
        kept.append(part.text[place:])
    return kept


def said(rendered: Rendered) -> list[str]:
    texts = [part for part in rendered.parts if isinstance(part, TextPart)]
    return [part.text[span.start : span.end] for part in texts for span in part.spans]


@every_family
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(texts=st.lists(contents, min_size=3, max_size=6))
def test_no_text_becomes_or_moves_a_control_token(family: Family, texts: list[str]) -> None:
    tokenizer, template = MODELS[family.name]
    turns = [turn for turn in conversation(texts) if turn.content.strip()]
    if len(turns) != len(conversation(texts)):
        return
    rendered = template.render(turns, NOON)
    tame = template.render([Turn(turn.role, harmless(turn.content)) for turn in turns], NOON)

    assert scaffold(rendered) == scaffold(tame)
    assert [harmless(text) for text in said(rendered)] == said(tame)
    assert all(
        any(text in turn.content for turn in turns) or not template.supports_system
        for text in said(rendered)
    )

    token_ids = TokenLedger(tokenizer, template).encode(turns, NOON)
    first = tokenizer.num_tokens - len(tokenizer.control_tokens)
    expected = Counter(part.token_id for part in tame.parts if isinstance(part, ControlToken))
    assert Counter(token_id for token_id in token_ids if token_id >= first) == expected
    by_id = {token.token_id: token.text for token in tokenizer.control_tokens.values()}
    decoded = b"".join(
        by_id[token_id].encode() if token_id in by_id else tokenizer.token_bytes(token_id)
        for token_id in token_ids
    )
    assert decoded.decode() == rendered.text


paths = st.lists(
    st.builds(
        lambda role, content, thinking: Turn(
            role, content, thinking, tuple(content.encode()) if role is Role.ASSISTANT else ()
        ),
        st.sampled_from(Role),
        st.sampled_from(["", " ", "answer", "Why?", "two\n\nlines ", "<think>"]),
        st.sampled_from(["", "hm"]),
    ),
    max_size=7,
)


@every_family
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(path=paths, system_prompt=st.sampled_from(["", "Be brief."]))
def test_any_path_of_a_tree_renders(family: Family, path: list[Turn], system_prompt: str) -> None:
    tokenizer, template = MODELS[family.name]
    try:
        turns = normalise(path, system_prompt)
    except UsageError:
        return
    assert TokenLedger(tokenizer, template).encode(turns, NOON)


@every_family
def test_the_first_token_stands_once(family: Family) -> None:
    tokenizer, template = MODELS[family.name]
    token_ids = TokenLedger(tokenizer, template).encode([Turn(Role.USER, "Hello")], NOON)
    if tokenizer.bos_id is not None:
        assert token_ids[0] == tokenizer.bos_id
        assert token_ids.count(tokenizer.bos_id) == 1


@every_family
def test_a_day_later_the_prompt_of_a_conversation_is_the_same(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer, template = MODELS[family.name]
    turns = conversation(["Be brief.", "Hello"])
    before = TokenLedger(tokenizer, template).encode(turns, NOON)

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Tomorrow":
            return cls(2026, 3, 2, 12, 0)

    monkeypatch.setattr("datetime.datetime", Tomorrow)
    monkeypatch.setattr("time.time", lambda: (NOON + timedelta(days=1)).timestamp())
    later = TokenLedger(tokenizer, family.template(tokenizer)).encode(turns, NOON)
    assert later == before


def test_what_each_family_can_do_is_noticed() -> None:
    templates = {name: template for name, (_, template) in MODELS.items()}
    assert {name for name, made in templates.items() if not made.supports_system} == {
        "gemma",
        "mistral",
    }
    assert {name for name, made in templates.items() if made.opened_tag} == {"deepseek_r1"}


def test_old_thinking_is_sent_back_only_where_the_template_asks_for_it() -> None:
    turns = [Turn(Role.USER, "a"), Turn(Role.ASSISTANT, "b", "secret"), Turn(Role.USER, "c")]
    for _, template in MODELS.values():
        assert "secret" not in template.render(turns, NOON).text
    _, qwen3 = MODELS["qwen3"]
    last = qwen3.render(turns[:2], NOON, add_generation_prompt=False)
    assert "<think>\nsecret\n</think>\n\nb<|im_end|>" in last.text
