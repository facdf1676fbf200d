"""An answer with its end, read from the stream that the engine gives."""

from collections.abc import Callable
from dataclasses import dataclass

from app.chat.thinking import ThinkingSplitter
from engine.async_engine import OutputStream
from engine.logprobs import TokenChoice
from engine.metrics import Timings
from engine.request import FinishReason


@dataclass(frozen=True, slots=True)
class Written:
    """`notice`: what the reader should know about its end, or empty."""

    content: str
    thinking: str
    finish_reason: FinishReason
    timings: Timings
    notice: str
    choices: tuple[TokenChoice, ...] = ()
    """Of its tokens, where they were asked for."""


async def read_whole(
    stream: OutputStream,
    splitter: ThinkingSplitter,
    write: Callable[[str], None] = lambda piece: None,
) -> Written:
    """To its end; each piece of the answer goes to `write` as it comes."""
    content: list[str] = []
    thinking: list[str] = []
    choices: list[TokenChoice] = []
    async for output in stream:
        choices += output.choices
        pieces = [splitter.feed(output.text)]
        if output.finish_reason is not None:
            pieces.append(splitter.finish())
        for thought, answer in pieces:
            thinking.append(thought)
            content.append(answer)
            if answer:
                write(answer)
    assert output.finish_reason is not None and output.timings is not None
    return Written(
        "".join(content),
        "".join(thinking),
        output.finish_reason,
        output.timings,
        output.notice,
        tuple(choices),
    )
