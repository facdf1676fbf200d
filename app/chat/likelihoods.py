"""How sure the model was of each token of an answer, and what else could have come there.

Probabilities are the model's own, before penalties, temperature and filters.
"""

import codecs
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.logprobs import TokenChoice, TokenLogprob
from engine.tokenizer import Tokenizer

NUM_ALTERNATIVES = 5
LEAST = -100.0
"""A logarithm below that is written as this: JSON has no infinity."""
PLACES = 4
MOST_ALTERNATIVES = 20


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that could have come. `text` is empty for one that is no text, such as the end."""

    token_id: int
    text: str
    logprob: float

    @property
    def probability(self) -> float:
        return math.exp(self.logprob)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A token of the answer: what it added to the text, and how likely it was. The alternatives
    have the best one first, and may have the token itself among them."""

    text: str
    logprob: float
    alternatives: tuple[Alternative, ...] = ()

    @property
    def probability(self) -> float:
        return math.exp(self.logprob)


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """Of a whole answer, as compact JSON: long answers are often read, and seldom looked into.

    `[[text, logprob, [[token_id, text, logprob], ...]], ...]`, one for each of its tokens.
    """

    source: str

    @classmethod
    def of(cls, tokens: Iterable[Chosen]) -> "Likelihoods":
        found = [
            [
                each.text,
                _rounded(each.logprob),
                [
                    [other.token_id, other.text, _rounded(other.logprob)]
                    for other in each.alternatives
                ],
            ]
            for each in tokens
        ]
        return cls(json.dumps(found, ensure_ascii=False, separators=(",", ":")))

    @classmethod
    def from_json(cls, found: object) -> "Likelihoods":
        """Raises ValueError for what `as_json` does not give."""
        if not isinstance(found, list):
            raise ValueError("likelihoods are a list")
        return cls.of([_chosen(each) for each in found])

    def as_json(self) -> Any:
        return json.loads(self.source)

    def tokens(self) -> tuple[Chosen, ...]:
        return tuple(map(_chosen, self.as_json()))


def chosen_of(
    choices: Sequence[TokenChoice], tokenizer: Tokenizer, before: Sequence[int] = ()
) -> list[Chosen]:
    """What the engine told of tokens that came after the tokens `before`; the texts join to that
    of the answer: a token in the middle of a character adds nothing yet."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for token_id in before:
        decoder.decode(tokenizer.token_bytes(token_id))
    return [
        Chosen(
            decoder.decode(tokenizer.token_bytes(choice.chosen.token_id)),
            choice.chosen.logprob,
            tuple(_alternative(each, tokenizer) for each in choice.alternatives),
        )
        for choice in choices
    ]


def _alternative(token: TokenLogprob, tokenizer: Tokenizer) -> Alternative:
    text = tokenizer.token_bytes(token.token_id).decode(errors="replace")
    return Alternative(token.token_id, text, token.logprob)


def _rounded(logprob: float) -> float:
    return round(min(0.0, max(LEAST, logprob)), PLACES)


def _chosen(found: object) -> Chosen:
    match found:
        case [str(text), logprob, list(others)] if len(others) <= MOST_ALTERNATIVES:
            return Chosen(text, _logprob(logprob), tuple(map(_read_alternative, others)))
    raise ValueError("a token is a text, a logarithm and a list of alternatives")


def _read_alternative(found: object) -> Alternative:
    match found:
        case [int(token_id), str(text), logprob] if 0 <= token_id < 2**31:
            return Alternative(token_id, text, _logprob(logprob))
    raise ValueError("an alternative is an id, a text and a logarithm")


def _logprob(found: object) -> float:
    if type(found) not in (int, float) or not LEAST <= found <= 0:  # type: ignore[operator]
        raise ValueError(f"a logarithm of a probability is between {LEAST:g} and 0")
    return float(found)  # type: ignore[arg-type]
