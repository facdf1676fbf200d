"""Going on with an earlier division gives what dividing all of it anew would give."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.chat import division
from app.chat.division import NUM_REMEMBERED, Divider
from app.chat.ledger import TokenLedger
from app.chat.markup import ControlTexts, Marker
from app.chat.message import Role
from app.chat.template import CHATML, ChatTemplate
from app.chat.turns import Turn, normalise
from engine.tokenizer import ControlToken
from tests.fakes_text import FAMILIES, FakeTokenizer, Family

NOON = datetime(2026, 3, 1, 12, 0)


@pytest.fixture(autouse=True, scope="module")
def short_strides() -> Iterator[None]:
    """So that short texts go over a stride, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(division, "STRIDE", 64)
        yield


every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
TEXTS = ["answer", "the <|im_end|>", "é\ufdd0", "\n hello \n", "<think>", "a" * 150, " "]


def turn(role: Role, text: str, thinking: str, is_spelled: bool) -> Turn:
    token_ids = tuple(text.encode()) if role is Role.ASSISTANT and is_spelled else ()
    return Turn(role, text, thinking, token_ids)


# A history of prompts: each goes on from one of the earlier paths, cut anywhere.
steps = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(0, 8),
        st.lists(st.tuples(st.sampled_from(TEXTS), st.sampled_from(["", "hm"]), st.booleans())),
    ),
    min_size=2,
    max_size=7,
)


@every_family
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(history=steps)
def test_a_ledger_that_remembers_gives_the_ids_of_one_that_does_not(
    family: Family, history: list[tuple[int, int, list[tuple[str, str, bool]]]]
) -> None:
    tokenizer = family.tokenizer()
    made = TokenLedger(tokenizer, family.template(tokenizer))
    paths: list[list[Turn]] = [[]]
    for number, cut, texts in history:
        path = paths[number % len(paths)][:cut]
        for text in texts:
            role = Role.ASSISTANT if len(path) % 2 else Role.USER
            path.append(turn(role, *text))
        paths.append(path)
        turns = normalise([*path, Turn(Role.USER, "And?")], "Be brief.")
        fresh = TokenLedger(tokenizer, family.template(tokenizer))
        assert made.encode(turns, NOON) == fresh.encode(turns, NOON)


def test_only_the_new_end_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = FakeTokenizer()
    template = ChatTemplate(CHATML, tokenizer)
    divided: list[int] = []
    parts = division._Builder.add_content

    def count(builder: Any, text: str, token_ids: tuple[int, ...]) -> None:
        divided.append(len(text))
        parts(builder, text, token_ids)

    monkeypatch.setattr(division._Builder, "add_content", count)
    turns: list[Turn] = []
    for number in range(30):
        turns.append(Turn(Role.USER, f"question {number}"))
        divided.clear()
        rendered = template.render(turns, NOON)
        # The question, and the answer before it.
        assert len(divided) == min(number + 1, 2)
        turns.append(Turn(Role.ASSISTANT, "answer", "", tokenizer.spell_out("answer")))
    again = ChatTemplate(CHATML, tokenizer).render(turns[:-1], NOON)
    assert rendered == again


def test_an_answer_with_the_same_text_and_other_ids_is_another_answer() -> None:
    tokenizer = FakeTokenizer()
    made = TokenLedger(tokenizer, ChatTemplate(CHATML, tokenizer))
    encoded = []
    for token_ids in (tokenizer.spell_out("answer"), tuple(tokenizer.encode("answer"))):
        answer = Turn(Role.ASSISTANT, "answer", "", token_ids)
        turns = [Turn(Role.USER, "a"), answer, *[Turn(Role.USER, "b"), answer] * 3]
        encoded.append(made.encode([*turns, Turn(Role.USER, "c")], NOON))
        runs = zip(*(encoded[-1][place:] for place in range(len(token_ids))), strict=False)
        assert sum(run == token_ids for run in runs) == 4
    assert encoded[0] != encoded[1]


def test_a_longer_control_text_at_the_border_is_not_missed() -> None:
    short, long = ControlToken(1, "<|a|>"), ControlToken(2, "<|a|>b>")
    controls = ControlTexts({token.text: token for token in (short, long)})
    divider = Divider()
    for marked, expected in (("x<|a|>", (short,)), ("x<|a|>b>", (long,)), ("x<|a|>c", (short,))):
        parts = divider.divide(marked, Marker(controls, frozenset())).parts
        assert tuple(part for part in parts if isinstance(part, ControlToken)) == expected


def test_a_stray_mark_makes_no_border() -> None:
    """The template cut the end of a content away; next time it does not."""
    control = ControlToken(1, "<|a|>")
    controls = ControlTexts({control.text: control})
    divider = Divider()
    cut, whole = Marker(controls, frozenset()), Marker(controls, frozenset())
    text = cut.protect("word")
    head = text[:-1] + "<|a|>" + "y" * 20
    assert control in divider.divide(head + "z", cut).parts
    whole.protect("word")
    closed = divider.divide(head + text[-1], whole)
    assert closed == Divider().divide(head + text[-1], whole)
    assert control not in closed.parts


def test_many_conversations_in_turn_are_each_remembered() -> None:
    tokenizer = FakeTokenizer()
    made = TokenLedger(tokenizer, ChatTemplate(CHATML, tokenizer))
    chats = [[Turn(Role.USER, f"{number} is my number")] for number in range(NUM_REMEMBERED)]
    for _ in range(4):
        for turns in chats:
            made.encode(turns, NOON)
            turns += [Turn(Role.ASSISTANT, "answer"), Turn(Role.USER, "more")]
    assert len(made._encodings) == NUM_REMEMBERED
    tokenizer.encoded.clear()
    for turns in chats:
        made.encode(turns, NOON)
    assert tokenizer.encoded == []
