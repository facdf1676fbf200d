"""Likelihoods are stored whole, and what a file says of them is checked."""

import json
import math

import pytest

from app.chat.likelihoods import Alternative, Chosen, Likelihoods, chosen_of
from engine.logprobs import TokenChoice, TokenLogprob
from tests.fakes import ByteTokenizer

TOKENS = (
    Chosen("Hé", -0.1054, (Alternative(3, "Hé", -0.1054), Alternative(9, " <b>", -2.3))),
    Chosen("", -100.0, ()),
)


def choice(token_id: int, *others: int) -> TokenChoice:
    alternatives = tuple(TokenLogprob(each, -1.0) for each in others)
    return TokenChoice(TokenLogprob(token_id, -0.5), alternatives)


def test_they_come_back() -> None:
    likelihoods = Likelihoods.of(TOKENS)
    assert likelihoods.tokens() == TOKENS
    assert Likelihoods.from_json(json.loads(json.dumps(likelihoods.as_json()))) == likelihoods
    assert " <b>" in likelihoods.source and "\\u" not in likelihoods.source


def test_what_json_does_not_have_is_written_as_something_near() -> None:
    (token,) = Likelihoods.of([Chosen("a", -math.inf)]).tokens()
    assert token.logprob == -100.0
    (token,) = Likelihoods.of([Chosen("a", 1e-9)]).tokens()
    assert token.probability == 1.0


def test_the_texts_of_tokens_join_to_the_answer() -> None:
    text = "a é 🙂"
    tokens = chosen_of([choice(each, 98) for each in text.encode()], ByteTokenizer())
    assert "".join(each.text for each in tokens) == text
    assert tokens[0].alternatives == (Alternative(98, "b", -1.0),)


def test_a_character_that_was_begun_before_is_completed() -> None:
    first, *rest = "é".encode()
    tokens = chosen_of([choice(each) for each in rest], ByteTokenizer(), [first])
    assert tokens[-1].text == "é"


@pytest.mark.parametrize(
    "found",
    [
        {},
        "x",
        [1],
        [["a", -1]],
        [["a", 0.5, []]],
        [["a", True, []]],
        [["a", math.nan, []]],
        [[1, -1, []]],
        [["a", -1, [[1, "b"]]]],
        [["a", -1, [[-1, "b", -1]]]],
        [["a", -1, [[2**31, "b", -1]]]],
        [["a", -1, [["1", "b", -1]]]],
        [["a", -1, [[1, "b", -1]] * 21]],
    ],
)
def test_what_is_none_is_refused(found: object) -> None:
    with pytest.raises(ValueError):
        Likelihoods.from_json(found)
