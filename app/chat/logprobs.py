"""How likely the tokens of an answer were, in OpenAI's shape."""

from collections.abc import Iterable
from typing import Any

from engine.logprobs import TokenChoice, TokenLogprob
from engine.tokenizer import Tokenizer


def choices_as_json(choices: Iterable[TokenChoice], tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """One object for each token. A token may be a part of a character, so its bytes count."""
    return [
        _token(choice.chosen, tokenizer)
        | {"top_logprobs": [_token(each, tokenizer) for each in choice.alternatives]}
        for choice in choices
    ]


def _token(token: TokenLogprob, tokenizer: Tokenizer) -> dict[str, Any]:
    spelled = tokenizer.token_bytes(token.token_id)
    return {
        "token": spelled.decode("utf-8", "replace"),
        "logprob": token.logprob,
        "bytes": list(spelled),
    }
