"""What went wrong, as OpenAI's clients understand it."""

from typing import Any

from fastapi.responses import JSONResponse, Response

from engine.errors import (
    EngineDead,
    InglenookError,
    ModelError,
    NoTokenLeft,
    PromptTooLong,
    TemplateError,
    UsageError,
)

INVALID = "invalid_request_error"


def error_body(sentence: str, kind: str, code: str | None = None) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    return {"error": {"message": sentence, "type": kind, "param": None, "code": code}}


def body_of(error: InglenookError) -> dict[str, Any]:
    if isinstance(error, PromptTooLong):
        return error_body(str(error), INVALID, "context_length_exceeded")
    is_callers = isinstance(error, UsageError | NoTokenLeft)
    return error_body(str(error), INVALID if is_callers else "server_error")


def failed(error: InglenookError) -> Response:
    """The error with the status that fits."""
    status = 500
    if isinstance(error, UsageError | PromptTooLong | TemplateError | NoTokenLeft):
        status = 400
    elif isinstance(error, ModelError | EngineDead):
        status = 503
    return JSONResponse(body_of(error), status_code=status)


def refused_key() -> Response:
    sentence = (
        "This needs the key of this Inglenook: send it as 'Authorization: Bearer KEY'. It is"
        " shown in the settings of the page."
    )
    return JSONResponse(error_body(sentence, INVALID, "invalid_api_key"), status_code=401)
