"""A text becomes tokens once, and what a model generated stays what it was."""

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.chat.ledger import TokenLedger
from app.chat.message import Role
from app.chat.template import CHATML, PLAIN, ChatTemplate
from app.chat.turns import Turn
from tests.fakes_text import FAMILIES, FakeTokenizer, Family

NOON = datetime(2026, 3, 1, 12, 0)
USER = Turn(Role.USER, "Hello")
THINKS = CHATML.replace(
    "message.content +",
    "('<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' if message.reasoning_content"
    " else '') + message.content +",
)


def ledger(tokenizer: FakeTokenizer, source: str = CHATML) -> TokenLedger:
    return TokenLedger(tokenizer, ChatTemplate(source, tokenizer))


def spelled(tokenizer: FakeTokenizer, token_ids: list[int]) -> str:
    texts = {token.token_id: token.text for token in tokenizer.control_tokens.values()}
    return b"".join(
        texts[token_id].encode() if token_id in texts else tokenizer.token_bytes(token_id)
        for token_id in token_ids
    ).decode()


def contains(token_ids: list[int], run: tuple[int, ...]) -> bool:
    return any(tuple(token_ids[place : place + len(run)]) == run for place in range(len(token_ids)))


ANSWERS = [
    "hello answer",
    " answer the end",
    "\n\nhello\n",
    ' ~2 [(hu {"a":1}',
    "né 🙂",
    "answer\n",
]
steady = [family for family in FAMILIES if not family.rewrites_history]


@pytest.mark.parametrize("family", steady, ids=lambda family: family.name)
def test_ten_turns_never_read_a_token_again(family: Family) -> None:
    tokenizer = family.tokenizer()
    made = TokenLedger(tokenizer, family.template(tokenizer))
    turns = [Turn(Role.SYSTEM, "Be brief.")]
    held: list[int] = []
    for number in range(10):
        turns.append(Turn(Role.USER, f" question {number} "))
        prompt = made.encode(turns, NOON)
        assert prompt[: len(held)] == held
        # Templates that trim want an answer as they show it themselves.
        text = "hello answer" if number % 2 else "the answer"
        if family.name in {"llama2", "mistral", "vicuna"}:
            text = " " + text
        generated = tokenizer.spell_out(text)
        turns.append(Turn(Role.ASSISTANT, text, "", generated))
        held = [*prompt, *generated]


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ANSWERS), st.text(max_size=5)), min_size=1, max_size=6))
def test_whatever_was_said_the_whole_previous_exchange_is_a_prefix(
    exchanges: list[tuple[str, str]],
) -> None:
    tokenizer = FakeTokenizer()
    made = ledger(tokenizer)
    turns: list[Turn] = []
    held: list[int] = []
    for answer, question in exchanges:
        turns.append(Turn(Role.USER, "a" + question))
        prompt = made.encode(turns, NOON)
        assert prompt[: len(held)] == held
        generated = tokenizer.spell_out(answer)
        turns.append(Turn(Role.ASSISTANT, answer, "", generated))
        held = [*prompt, *generated]


@pytest.mark.parametrize("source", [CHATML, PLAIN], ids=["control tokens", "text only"])
def test_a_turn_costs_the_same_late_in_a_conversation(source: str) -> None:
    """NVIDIA/TensorRT-LLM#18389: tokenizing a long prompt again took half of the time."""
    tokenizer = FakeTokenizer()
    made = ledger(tokenizer, source)
    turns: list[Turn] = []
    costs = []
    for number in range(200):
        turns.append(Turn(Role.USER, f"question {number:03}"))
        tokenizer.encoded.clear()
        made.encode(turns, NOON)
        costs.append((len(tokenizer.encoded), sum(map(len, tokenizer.encoded))))
        answer = f"hello answer {number:03}"
        turns.append(Turn(Role.ASSISTANT, answer, "", tokenizer.spell_out(answer)))
    assert len(set(costs[2:])) == 1
    num_calls, num_characters = costs[-1]
    assert num_calls <= 4
    assert num_characters <= 200


def test_a_small_memory_forgets_and_stays_right() -> None:
    tokenizer = FakeTokenizer()
    template = ChatTemplate(CHATML, tokenizer)
    small, large = TokenLedger(tokenizer, template, 40), TokenLedger(tokenizer, template)
    turns = [USER, Turn(Role.ASSISTANT, "answer", "", tokenizer.spell_out("answer")), USER]
    assert small.encode(turns, NOON) == small.encode(turns, NOON) == large.encode(turns, NOON)


@pytest.mark.parametrize(
    ("generated", "content"),
    [
        ("hello", "hello"),
        ("  hello", "hello"),
        ("hello\n\n", "hello"),
        ("hello<stop>and more", "hello"),
        ("<think>\nhello?\n</think>\n\nhello", "hello"),
    ],
)
def test_the_ids_of_what_is_shown_are_kept(generated: str, content: str) -> None:
    tokenizer = FakeTokenizer()
    turns = [USER, Turn(Role.ASSISTANT, content, "", tokenizer.spell_out(generated)), USER]
    token_ids = ledger(tokenizer).encode(turns, NOON)
    assert contains(token_ids, tokenizer.spell_out(content))
    assert spelled(tokenizer, token_ids) == spelled(
        tokenizer, ledger(tokenizer).encode([USER, Turn(Role.ASSISTANT, content), USER], NOON)
    )


def test_thinking_that_the_template_shows_keeps_its_ids_as_well() -> None:
    tokenizer = FakeTokenizer()
    written = tokenizer.spell_out("<think>\nhello the\n</think>\n\nanswer")
    turns = [USER, Turn(Role.ASSISTANT, "answer", "hello the", written), USER]
    assert contains(ledger(tokenizer, THINKS).encode(turns, NOON), written)


def test_thinking_between_control_tokens_keeps_its_ids() -> None:
    tokenizer = FakeTokenizer(["<|im_start|>", "<|im_end|>", "<think>", "</think>"])
    opening, closing = (tokenizer.control_tokens[text].token_id for text in ("<think>", "</think>"))
    written = (
        opening,
        *tokenizer.spell_out("\nhello the\n"),
        closing,
        *tokenizer.spell_out("\n\nanswer"),
    )
    turns = [USER, Turn(Role.ASSISTANT, "answer", "hello the", written), USER]
    assert contains(ledger(tokenizer, THINKS).encode(turns, NOON), written)


def test_a_control_token_that_was_generated_inside_an_answer_is_not_sent_back() -> None:
    tokenizer = FakeTokenizer()
    start = tokenizer.control_tokens["<|im_start|>"].token_id
    before = tokenizer.spell_out("answer the ")
    turns = [USER, Turn(Role.ASSISTANT, "answer the end", "", (*before, start, *b"end")), USER]
    token_ids = ledger(tokenizer).encode(turns, NOON)
    assert token_ids.count(start) == 4
    assert contains(token_ids, before)


def test_ids_that_spell_something_else_are_not_used() -> None:
    tokenizer = FakeTokenizer()
    turns = [USER, Turn(Role.ASSISTANT, "hello", "", tokenizer.spell_out("goodbye")), USER]
    plain = [USER, Turn(Role.ASSISTANT, "hello"), USER]
    made = ledger(tokenizer)
    assert made.encode(turns, NOON) == made.encode(plain, NOON)


@pytest.mark.parametrize("token_id", [100_000, -5])
def test_ids_of_another_model_with_a_larger_vocabulary_are_not_used(token_id: int) -> None:
    tokenizer = FakeTokenizer()
    turns = [USER, Turn(Role.ASSISTANT, "hello answer", token_ids=(token_id,)), USER]
    assert "hello answer" in spelled(tokenizer, ledger(tokenizer).encode(turns, NOON))


def test_an_answer_that_ended_within_a_character_is_still_kept() -> None:
    tokenizer = FakeTokenizer()
    written = (*tokenizer.spell_out("hello "), *"🙂".encode()[:2])
    turns = [USER, Turn(Role.ASSISTANT, "hello ", "", written), USER]
    token_ids = ledger(tokenizer).encode(turns, NOON)
    assert contains(token_ids, tokenizer.spell_out("hello "))
    assert spelled(tokenizer, token_ids).count("hello <|im_end|>") == 1


def test_text_after_generated_ids_gets_no_second_space() -> None:
    tokenizer = FakeTokenizer(["<s>"], end="<s>", puts_space_first=True)
    turns = [USER, Turn(Role.ASSISTANT, " hello", "", tokenizer.spell_out(" hello")), USER]
    token_ids = ledger(tokenizer, PLAIN).encode(turns, NOON)
    assert spelled(tokenizer, token_ids) == (
        " User: Hello\nAssistant: hello\nUser: Hello\nAssistant:"
    )


def test_a_first_token_that_the_template_leaves_out_is_added() -> None:
    tokenizer = FakeTokenizer(bos="<s>")
    token_ids = ledger(tokenizer).encode([USER], NOON)
    assert token_ids[0] == tokenizer.bos_id
    assert token_ids.count(token_ids[0]) == 1


def test_a_broken_character_inside_an_answer_costs_none_of_its_tokens() -> None:
    tokenizer = FakeTokenizer()
    made = ledger(tokenizer)
    prompt = made.encode([USER], NOON)
    # The fake's other tokens are bytes.
    written = (*tokenizer.spell_out("hello "), 0xFF, *tokenizer.spell_out(" answer"))
    shown = "hello \ufffd answer"
    next_prompt = made.encode([USER, Turn(Role.ASSISTANT, shown, "", written), USER], NOON)
    held = [*prompt, *written]
    assert next_prompt[: len(held)] == held


def test_at_least_what_stands_before_a_broken_character_is_kept() -> None:
    tokenizer = FakeTokenizer()
    made = ledger(tokenizer)
    prompt = made.encode([USER], NOON)
    before = tokenizer.spell_out("hello ")
    written = (*before, 0xFF, *tokenizer.spell_out(" answer"))
    shown = "hello \ufffd answer"
    next_prompt = made.encode([USER, Turn(Role.ASSISTANT, shown, "", written), USER], NOON)
    held = [*prompt, *before]
    assert next_prompt[: len(held)] == held
