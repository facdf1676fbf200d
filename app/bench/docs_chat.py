"""A chat while documents are read: what lies between its tokens, beside the same chat alone.

The library is the app's, in the process and the event loop of the engine, so it takes from the chat
what it takes there: cores, memory, and Python's interpreter.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from app.bench.compare import Figure, Pair, interleave, show_pair
from app.bench.docs_reading import new_library
from app.bench.our_engine import OurEngine
from app.bench.workload import Generation, Prompts
from app.documents.index_facts import noted
from app.documents.library import Library
from app.documents.pace import PAGES
from app.interpreter import take_short_turns

PROMPT_TOKENS = 64
WAIT_S = 0.01
MOST_WAIT_S = 60.0


class Gaps(NamedTuple):
    """Milliseconds between one token and the next, as the chat's reader sees them."""

    ms: list[float]
    pages_read: int = 0

    def at(self, percent: float) -> float:
        return float(np.percentile(self.ms, percent))


class Chats(NamedTuple):
    """`ratios` are of the median gap and of the 95th percentile, reading to alone."""

    pairs: Sequence[Pair[Gaps]]
    ratios: dict[str, Figure]


def chats(
    engine: OurEngine, folder: Path, num_tokens: int, *, min_pairs: int, minutes: float
) -> Chats:
    """Chats beside a library that reads `folder`, and alone, in turn."""
    take_short_turns()
    prompts = Prompts(engine.tokenizer)
    generation = prompts.generations(1, PROMPT_TOKENS, num_tokens)[0]

    async def prepared() -> Library:
        return await stack.enter_async_context(new_library())

    stack = AsyncExitStack()
    library = engine.run(prepared())

    def side(chat: Callable[[], Coroutine[None, None, Gaps]]) -> Callable[[int], Gaps]:
        def measured(number: int) -> Gaps:
            engine.forget()
            return engine.run(chat())

        return measured

    try:
        beside = side(lambda: _beside(engine, generation, library, folder))
        alone = side(lambda: _gaps(engine, generation))
        # What is done for the first time takes longer.
        beside(0), alone(0)
        pairs, ratios = interleave(
            beside,
            alone,
            lambda pair: {
                name: pair.ours.at(percent) / pair.theirs.at(percent)
                for name, percent in (("median", 50), ("p95", 95))
            },
            minutes=minutes,
            min_pairs=min_pairs,
            on_pair=show_pair(),
        )
        return Chats(pairs, ratios)
    finally:
        engine.run(stack.aclose())


async def _beside(
    engine: OurEngine, generation: Generation, library: Library, folder: Path
) -> Gaps:
    before = await _pages_read(library)
    await library.add(folder)
    reading = asyncio.create_task(_keep_reading(library, folder))
    while (at_work := library.at_work) is None or not at_work.num_read:
        await asyncio.sleep(WAIT_S)
    found = await _gaps(engine, generation)
    num_read = 0 if library.at_work is None else library.at_work.num_read
    num_read += await _pages_read(library) - before
    reading.cancel()
    await asyncio.wait([reading])
    await library.remove(folder)
    await library.settled()
    return found._replace(pages_read=num_read)


async def _keep_reading(library: Library, folder: Path) -> None:
    """However few documents there are, one of them is being read."""
    while True:
        await library.rested(MOST_WAIT_S)
        if library.at_work is None:
            await library.read_again(folder)


async def _pages_read(library: Library) -> int:
    """Of files that are done, since the library was made."""
    return await library.ask(lambda tables: noted(tables, PAGES) or 0)


async def _gaps(engine: OurEngine, generation: Generation) -> Gaps:
    arrivals: list[float] = []
    with engine.engine.submit(list(generation.prompt), generation.params) as stream:
        async for output in stream:
            arrivals.extend([perf_counter()] * len(output.token_ids))
    return Gaps([1e3 * (end - start) for start, end in pairwise(arrivals)])
