"""Several answers to one prompt, which is read once.

The first one is asked for at once, and the others as soon as it has read the prompt: then they
find it in the KV memory, and all are written together.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Self

from engine.async_engine import OutputStream
from engine.errors import InglenookError
from engine.request import RequestOutput
from engine.sampling_params import SamplingParams, for_answer


class Answers:
    """Iterate it once, inside its `with` block. Owned by the task of its HTTP request.

    Gives the number of an answer, from 0, with each output. Raises the error of the first answer
    that fails; leaving the block ends the others. With a seed, answer k is the one that seed + k
    gives.
    """

    def __init__(
        self, submit: Callable[[SamplingParams], OutputStream], params: SamplingParams, num: int
    ) -> None:
        """Raises what `submit` raises."""
        self._submit = submit
        self._params = params
        self._num = num
        self._streams = [submit(params)]
        self._is_aborted = False
        self._items: asyncio.Queue[tuple[int, RequestOutput] | InglenookError] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()
        for task in self._tasks:
            task.cancel()

    def abort(self) -> None:
        """Ask for the end of all; harmless when they are over."""
        self._is_aborted = True
        for stream in self._streams:
            stream.abort()

    async def __aiter__(self) -> AsyncIterator[tuple[int, RequestOutput]]:
        self._read(0)
        num_over = 0
        while num_over < len(self._streams):
            item = await self._items.get()
            if isinstance(item, InglenookError):
                raise item
            _, output = item
            if len(self._streams) == 1 and (output.token_ids or output.finish_reason):
                self._ask_for_the_others()
            num_over += output.finish_reason is not None
            yield item

    async def ask_again(self, params: SamplingParams) -> AsyncIterator[RequestOutput]:
        """The outputs of one answer more, with other choices. Raises what its stream raises."""
        stream = self._submit(params)
        self._streams.append(stream)
        if self._is_aborted:
            stream.abort()
        async for output in stream:
            yield output

    def _ask_for_the_others(self) -> None:
        if self._is_aborted:
            return
        for number in range(1, self._num):
            self._streams.append(self._submit(for_answer(self._params, number)))
            self._read(number)

    def _read(self, number: int) -> None:
        self._tasks.append(asyncio.create_task(self._pass_on(number)))

    async def _pass_on(self, number: int) -> None:
        try:
            async for output in self._streams[number]:
                self._items.put_nowait((number, output))
        except InglenookError as error:
            self._items.put_nowait(error)
