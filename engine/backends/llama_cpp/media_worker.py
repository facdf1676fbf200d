"""The thread that looks at pictures: one after the other, and never in the way of an end."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.media import Media

Seen = list[NDArray[np.float32]]
Look = Callable[[Media], Seen]


class _Order(NamedTuple):
    media: Media
    seen: Future[Seen]


class MediaWorker:
    """A pool of the library would be waited for when the process ends; looking may take a while."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._thread: Thread | None = None

    def submit(self, media: Media) -> Future[Seen]:
        """Look at it as soon as what was asked before is done, unless it is cancelled first."""
        if self._thread is None:
            self._thread = Thread(target=self._work, name="media", daemon=True)
            self._thread.start()
        seen: Future[Seen] = Future()
        self._orders.put(_Order(media, seen))
        return seen

    def close(self) -> None:
        """End after what is being looked at; nothing else is begun. Does not wait."""
        try:
            while True:
                order = self._orders.get_nowait()
                if order is not None:
                    order.seen.cancel()
        except Empty:
            self._orders.put(None)

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            if not order.seen.set_running_or_notify_cancel():
                continue
            try:
                order.seen.set_result(self._look(order.media))
            except BaseException as error:  # handed to who asked, whatever it is
                order.seen.set_exception(error)
            del order  # or what was seen last would stay in memory
