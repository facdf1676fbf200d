"""What is said about sampling params that are not possible; they come from files and programs."""

import math
from collections.abc import Iterable

from engine.errors import InvalidParams
from engine.sampling.controls import LLAMA_CPP_ORDER

BAN = -100.0
"""A bias of this, or below it, leaves a token no chance at all."""
MOST_BIASES = 10_000
MOST_TEXTS = 100
LONGEST_TEXT = 400


def check_number(
    name: str, value: object, low: float, high: float, *, is_whole: bool = False
) -> None:
    if type(value) not in ((int,) if is_whole else (int, float)):
        raise InvalidParams(f"{name} must be a {'whole ' * is_whole}number.")
    assert isinstance(value, int | float)
    if not low <= value <= high:
        raise InvalidParams(
            f"{name} must be between {low:,.10g} and {high:,.10g}, got {shown(value)}."
        )


def check_texts(name: str, texts: Iterable[object]) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise InvalidParams(f"{name} must be a list of texts.")
        if not text:
            raise InvalidParams(f"A text of {name} must not be empty.")


def check_short_texts(name: str, texts: tuple[object, ...]) -> None:
    """They are compared with the bytes of tokens, at every step."""
    check_texts(name, texts)
    if len(texts) > MOST_TEXTS:
        raise InvalidParams(f"{name} may have {MOST_TEXTS} texts, got {len(texts):,}.")
    for text in texts:
        assert isinstance(text, str)
        if len(text) > LONGEST_TEXT:
            raise InvalidParams(
                f"A text of {name} may have {LONGEST_TEXT} characters, got {len(text):,}."
            )
        # What a broken character is shown as would never be found among the bytes.
        if "\ufffd" in text or any("\ud800" <= each <= "\udfff" for each in text):
            raise InvalidParams(f"{name} must be made of whole characters.")


def check_order(order: tuple[object, ...]) -> None:
    for number, name in enumerate(order):
        if name not in LLAMA_CPP_ORDER:
            raise InvalidParams(
                f"sampler_order has no {shown(name)!r}: it is made of {', '.join(LLAMA_CPP_ORDER)}."
            )
        if name in order[:number]:
            raise InvalidParams(f"sampler_order has {name} twice.")


def check_biases(biases: object) -> None:
    is_right = isinstance(biases, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 for pair in biases
    )
    if not is_right:
        raise InvalidParams("logit_bias must be pairs of a token id and a bias.")
    assert isinstance(biases, tuple)
    if len(biases) > MOST_BIASES:
        raise InvalidParams(f"logit_bias may have {MOST_BIASES:,} tokens, got {len(biases):,}.")
    for token_id, bias in biases:
        if type(token_id) is not int or token_id < 0:
            raise InvalidParams(f"logit_bias must have ids of tokens, got {shown(token_id)}.")
        if bias != -math.inf:
            check_number("A bias in logit_bias", bias, BAN, -BAN)
    if len({token_id for token_id, _ in biases}) < len(biases):
        raise InvalidParams("logit_bias must not have a token twice.")


def check_vocabulary(biases: tuple[tuple[int, float], ...], num_tokens: int) -> None:
    """Which tokens there are is known with the model."""
    for token_id, _ in biases:
        if token_id >= num_tokens:
            raise InvalidParams(
                f"logit_bias names token {token_id:,}, and this model has {num_tokens:,} tokens:"
                " name an id below that."
            )


def shown(value: object) -> str:
    """The beginning of a value, for a sentence."""
    return str(value)[:20]
