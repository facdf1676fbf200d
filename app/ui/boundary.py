"""The page's boundary: what a handler raises becomes one sentence in the corner of the page."""

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import gradio as gr

from engine.errors import InglenookError

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


def told(handler: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """`handler`, with its errors told to the user; what the page shows stays as it was."""

    @functools.wraps(handler)
    async def telling(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await handler(*args, **kwargs)
        except InglenookError as error:
            raise gr.Error(
                str(error), print_exception=False, title="That did not work", duration=12
            ) from error
        except Exception as error:
            log.exception("A handler of the page failed")
            raise gr.Error(
                f"Something unexpected happened ({type(error).__name__}); nothing was lost. The log"
                " has the details.",
                print_exception=False,
                title="That did not work",
                duration=12,
            ) from error

    return telling
