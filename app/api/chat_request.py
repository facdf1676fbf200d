"""The body of /v1/chat/completions, understood or refused field by field."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.api.answer_form import FIELDS as FORM_FIELDS
from app.api.answer_form import read_form
from app.api.sampling_fields import FIELDS as SAMPLING_FIELDS
from app.api.sampling_fields import read_sampling
from app.chat.beam_answers import refuse_drawing
from app.chat.message import Role
from app.chat.turns import Turn
from engine.errors import UsageError
from engine.guided.grammar import Grammar
from engine.logprobs import MOST_ALTERNATIVES
from engine.sampling.beam import BeamParams, EarlyStopping
from engine.sampling_params import MOST_ANSWERS, SamplingParams, with_changes

# They change nothing about an answer here, so taking them promises nothing.
HARMLESS = frozenset({"metadata", "store", "service_tier", "safety_identifier"})
# What a field that we do not have may say, because it is what happens anyway.
DEFAULTS: Mapping[str, tuple[Any, ...]] = {
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "modalities": (["text"],),
}
ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
MESSAGE_FIELDS = frozenset({"role", "content", "reasoning_content"})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What the caller wants. `model` is its word for the model; there is only one.

    `user` is for whom it asks, or empty; that user's KV is kept on the disk.
    """

    model: str
    user: str
    path: tuple[Turn, ...]
    params: SamplingParams
    num_answers: int
    num_logprobs: int | None
    """So many alternatives of each token are told; None: nothing about likelihoods."""
    beams: BeamParams | None
    """The best answers are searched for, instead of drawing them."""
    form: Grammar | None
    is_streamed: bool
    wants_usage: bool


def read_chat_request(body: object, defaults: SamplingParams) -> ChatRequest:
    """Raises UsageError or InvalidParams; a field that would be ignored is refused by name."""
    if not isinstance(body, dict):
        raise UsageError("The body must be a JSON object.")
    for name, value in body.items():
        if value is None or name in HARMLESS or name in _OWN_FIELDS:
            continue
        if value not in DEFAULTS.get(name, ()):
            raise UsageError(f"The field {name!r} is not supported: leave it out.")
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise UsageError("The field 'stream_options' must be an object.")
    sampling = read_sampling(body)
    return ChatRequest(
        model=_text(body.get("model") or "", "model"),
        user=_text(body.get("user") or "", "user"),
        path=_path(body.get("messages")),
        params=with_changes(defaults, sampling),
        num_answers=_count(body.get("n")),
        num_logprobs=_num_logprobs(body),
        beams=_beams(body, sampling),
        form=read_form(body),
        is_streamed=_flag(body.get("stream"), "stream"),
        wants_usage=_flag(options.get("include_usage"), "include_usage"),
    )


_OWN_FIELDS = (
    FORM_FIELDS
    | SAMPLING_FIELDS
    | {"model", "user", "messages", "n", "stream", "stream_options", "logprobs", "top_logprobs"}
    | {"n_beams", "length_penalty", "early_stopping"}
)


def _beams(body: Mapping[str, Any], sampling: Mapping[str, Any]) -> BeamParams | None:
    """Raises UsageError, also for fields that would have no effect beside `n_beams`."""
    penalty, stopping = body.get("length_penalty"), body.get("early_stopping")
    if body.get("n_beams") is None:
        if penalty is not None or stopping is not None:
            raise UsageError("The fields 'length_penalty' and 'early_stopping' need 'n_beams'.")
        return None
    if body.get("stream") or body.get("logprobs"):
        raise UsageError("With 'n_beams' neither 'stream' nor 'logprobs' can be had: leave it out.")
    refuse_drawing(name for name, value in sampling.items() if value is not None)
    if not (stopping is None or isinstance(stopping, bool) or stopping == "never"):
        raise UsageError("The field 'early_stopping' must be true, false or \"never\".")
    return BeamParams(
        num_beams=body["n_beams"],
        length_penalty=1.0 if penalty is None else penalty,
        early_stopping=EarlyStopping(str(stopping or False).lower()),
        num_answers=_count(body.get("n")),
    )


def _num_logprobs(body: Mapping[str, Any]) -> int | None:
    num = body.get("top_logprobs")
    if num is None:
        num = 0
    if type(num) is not int or not 0 <= num <= MOST_ALTERNATIVES:
        raise UsageError(
            f"The field 'top_logprobs' must be a whole number between 0 and {MOST_ALTERNATIVES}."
        )
    if _flag(body.get("logprobs"), "logprobs"):
        return num
    if num:
        raise UsageError("The field 'top_logprobs' needs 'logprobs': true.")
    return None


def _count(value: object) -> int:
    if value is None:
        return 1
    if type(value) is not int or not 1 <= value <= MOST_ANSWERS:
        raise UsageError(f"The field 'n' must be a whole number between 1 and {MOST_ANSWERS}.")
    return value


def _flag(value: object, name: str) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise UsageError(f"The field {name!r} must be true or false.")
    return value


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"The field {name!r} must be a text.")
    return value


def _path(value: object) -> tuple[Turn, ...]:
    if not isinstance(value, list) or not value:
        raise UsageError("The field 'messages' must be a list with at least one message.")
    return tuple(_turn(number, item) for number, item in enumerate(value))


def _turn(number: int, item: object) -> Turn:
    where = f"messages[{number}]"
    if not isinstance(item, dict):
        raise UsageError(f"{where} must be an object.")
    role = ROLES.get(str(item.get("role")))
    if role is None:
        raise UsageError(f"{where}.role must be one of {', '.join(ROLES)}.")
    for name, value in item.items():
        # An empty value says nothing; answers of other servers come back with several.
        if value and name not in MESSAGE_FIELDS:
            raise UsageError(f"{where}.{name} is not supported: leave it out.")
    thinking = _text(item.get("reasoning_content") or "", f"{where}.reasoning_content")
    return Turn(role, _content(where, item.get("content")), thinking)


def _content(where: str, content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise UsageError(f"{where}.content must be a text or a list of text parts.")
    texts = []
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "text":
            raise UsageError(f"{where}.content may only have parts of type 'text'.")
        texts.append(_text(part.get("text"), f"{where}.content.text"))
    return "".join(texts)
