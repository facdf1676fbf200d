"""The page's boundary: what a handler raises becomes one sentence in the corner of the page."""

import contextlib
import functools
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import ParamSpec, TypeVar

import gradio as gr

from engine.errors import InglenookError, NotFound

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)


@contextlib.contextmanager
def _telling() -> Iterator[None]:
    try:
        yield
    except NotFound as error:
        # Its own sentence names an id, which nobody sees on the page.
        raise _sentence("This conversation is gone: it may have been deleted.") from error
    except InglenookError as error:
        raise _sentence(str(error)) from error
    except Exception as error:
        log.exception("A handler of the page failed")
        raise _sentence(
            f"Something unexpected happened ({type(error).__name__}); nothing was lost. The log"
            " has the details."
        ) from error


def _sentence(text: str) -> gr.Error:
    return gr.Error(text, print_exception=False, title="That did not work", duration=12)


def told(handler: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """`handler`, with its errors told to the user; what the page shows stays as it was."""

    @functools.wraps(handler)
    async def telling(*args: P.args, **kwargs: P.kwargs) -> T:
        with _telling():
            return await handler(*args, **kwargs)

    return telling


def told_on_the_way(
    handler: Callable[P, AsyncGenerator[T, None]],
) -> Callable[P, AsyncGenerator[T, None]]:
    """As `told`, for a handler that goes on showing something new."""

    @functools.wraps(handler)
    async def telling(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        with _telling():
            async with contextlib.aclosing(handler(*args, **kwargs)) as updates:
                async for update in updates:
                    yield update

    return telling
