"""An error of a handler is told in one sentence."""

from collections.abc import AsyncGenerator

import gradio as gr
import pytest

from app.ui.boundary import told, told_on_the_way
from engine.errors import DiskFull, NotFound


async def test_our_own_errors_are_told_as_they_are() -> None:
    @told
    async def fails() -> None:
        raise DiskFull("There is no room left.")

    with pytest.raises(gr.Error) as caught:
        await fails()
    assert caught.value.message == "There is no room left."


async def test_an_unexpected_error_is_logged_and_told_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @told
    async def fails() -> None:
        raise RuntimeError("a secret path")

    with pytest.raises(gr.Error) as caught:
        await fails()
    assert "secret" not in caught.value.message
    assert "RuntimeError" in caught.value.message
    assert "a secret path" in caplog.text


async def test_a_value_passes_through() -> None:
    @told
    async def works(value: int) -> int:
        return value + 1

    assert await works(1) == 2


async def test_a_conversation_that_is_gone_is_told_without_its_id() -> None:
    @told
    async def fails() -> None:
        raise NotFound("There is no conversation 0123abcd: it may have been deleted.")

    with pytest.raises(gr.Error) as caught:
        await fails()
    assert caught.value.message == "This conversation is gone: it may have been deleted."


async def test_what_goes_on_is_told_of_its_errors_and_closed_with_its_reader() -> None:
    closed = []

    @told_on_the_way
    async def counts(end: int) -> AsyncGenerator[int, None]:
        try:
            for number in range(end):
                yield number
            raise DiskFull("There is no room left.")
        finally:
            closed.append(end)

    seen = []
    with pytest.raises(gr.Error, match="There is no room left"):
        async for number in counts(2):
            seen.append(number)
    assert seen == [0, 1]
    early = counts(3)
    assert await anext(early) == 0
    await early.aclose()
    assert closed == [2, 3]
