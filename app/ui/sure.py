"""An answer token by token: how sure the model was of each, for the page's script to show."""

from typing import Any

from app.chat.likelihoods import Alternative, Chosen
from app.chat.message import Message
from app.ui.token_text import visible

DIGITS = 4


def tokens_of(answer: Message, model_name: str) -> dict[str, Any]:
    """What the script shows. `obstacle` says why nobody can go on from another token, or is
    empty: only the model that wrote the answer has its tokens."""
    assert answer.likelihoods is not None
    tokens = answer.likelihoods.tokens()
    obstacle = ""
    if answer.model != model_name:
        obstacle = (
            f"This answer was written by {answer.model}. Load that model to go on from another"
            " token."
        )
    return {
        "obstacle": obstacle,
        "tokens": [
            _token(each, token_id) for each, token_id in zip(tokens, answer.token_ids, strict=True)
        ],
    }


def _token(token: Chosen, token_id: int) -> dict[str, Any]:
    others = [_alternative(each, token_id) for each in token.alternatives]
    if not any(each["is_chosen"] for each in others):
        # It was not among the likeliest.
        mine = Alternative(token_id, token.text, token.logprob)
        others.append(_alternative(mine, token_id))
    return {"text": token.text, "p": _share(token.probability), "alternatives": others}


def _alternative(token: Alternative, token_id: int) -> dict[str, Any]:
    return {
        "id": token.token_id,
        "text": visible(token.text),
        "p": _share(token.probability),
        "is_chosen": token.token_id == token_id,
        "is_text": bool(token.text),
    }


def _share(probability: float) -> float:
    return round(probability, DIGITS)
