"""An error of a handler is told in one sentence."""

import gradio as gr
import pytest

from app.ui.boundary import told
from engine.errors import DiskFull


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
