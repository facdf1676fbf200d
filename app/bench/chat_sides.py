"""One side of a chat workload: a server, a client of it, and what its process has used."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import perf_counter, sleep
from typing import Self

from app.bench.chat_client import Answer, ChatClient, Message, OnPiece, go_on
from app.bench.chat_servers import Server
from app.bench.machine import Used, used_by

END_S = 30.0
LOOK_S = 0.1
# What a server does for later it begins only some time after the last answer.
QUIET_LOOKS = 5
BUSY_CORES = 0.15
PATIENCE_S = 10.0


class Side:
    """Started and ended with the `with` block. Owned by the thread that runs the workload.

    `used` counts from where the server was ready, over restarts; `asked_s` is the time that its
    user has waited for whole answers.
    """

    def __init__(self, server: Server, num_tokens: int) -> None:
        self._server = server
        self.num_tokens = num_tokens
        self.asked_s = 0.0
        self._client: ChatClient | None = None
        self._retired = Used()
        self._base = Used()
        self._kept: set[str] = set()
        self._away: set[str] = set()

    @property
    def name(self) -> str:
        return self._server.name

    @property
    def pid(self) -> int | None:
        return self._server.pid

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._server.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    @property
    def used(self) -> Used | None:
        """None: the process is not ours to watch."""
        now = self._now()
        return None if now is None else self._retired + (now - self._base)

    def ask(
        self,
        messages: Sequence[Message],
        chat_id: str,
        max_tokens: int | None = None,
        on_piece: OnPiece = go_on,
    ) -> Answer:
        """The next answer of a conversation, with all that its user waits for."""
        began = perf_counter()
        if chat_id in self._away:
            self._server.bring_back(chat_id)
            self._away.discard(chat_id)
        waited = perf_counter() - began
        answer = self.say(messages, chat_id, max_tokens, on_piece)
        answer = replace(answer, ttft_s=waited + answer.ttft_s, total_s=waited + answer.total_s)
        self.asked_s += answer.total_s
        return answer

    def say(
        self,
        messages: Sequence[Message],
        chat_id: str,
        max_tokens: int | None = None,
        on_piece: OnPiece = go_on,
    ) -> Answer:
        """The same without any account of it; any thread may."""
        assert self._client is not None, "it was not started"
        return self._client.say(
            messages,
            user=chat_id,
            max_tokens=max_tokens or self.num_tokens,
            more=self._server.fields,
            on_piece=on_piece,
        )

    def keep(self, chat_id: str) -> None:
        """The conversation rests now, and goes on after a restart."""
        self._server.keep(chat_id)
        self._kept.add(chat_id)

    def restart(self, *, kill: bool) -> None:
        """End the server when it has become quiet, and start it again on what it left."""
        settle([self])
        self._server.end(kill=kill)
        last = self._now()
        ends = perf_counter() + END_S
        # What it does while it ends counts, and nobody can ask it afterwards.
        while self._server.is_running and perf_counter() < ends:
            last = self._now() or last
            sleep(0.01)
        self._server.close()
        if last is not None:
            self._retired += last - self._base
        self._away = set(self._kept)
        self._start()

    def _start(self) -> None:
        self._server.start()
        self._client = ChatClient(self._server.url, self._server.key)
        self._client.connect()
        self._base = self._now() or Used()

    def _now(self) -> Used | None:
        pid = self._server.pid
        return None if pid is None else used_by(pid)


def settle(sides: Iterable[Side]) -> bool:
    """Wait until their processes rest, as a reader gives them time to, and no side works while
    the other is measured. False: one of them never rested."""
    watched = [side for side in sides if side.used is not None]
    ends = perf_counter() + PATIENCE_S
    quiet = 0
    before = busy_s(watched)
    while watched and quiet < QUIET_LOOKS:
        if perf_counter() > ends:
            return False
        sleep(LOOK_S)
        now = busy_s(watched)
        quiet = quiet + 1 if now - before < BUSY_CORES * LOOK_S * len(watched) else 0
        before = now
    return True


def busy_s(sides: Iterable[Side]) -> float:
    found = [side.used for side in sides]
    return sum(used.processor_s for used in found if used is not None)
