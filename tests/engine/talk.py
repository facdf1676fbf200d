"""Conversations over the fake backend, whose turns say what they read."""

import random

from engine.config import EngineConfig
from engine.kv.segment import Belonging
from engine.request import IN_FRONT, RequestOptions
from tests.engine.run import EngineRun
from tests.fakes import fake_config
from tests.fakes_disk import FakeDisk

SEGMENT = 16
"""Tokens in a segment of the fake memory."""


class Talk:
    """Conversations on one engine, which can be ended and started again on the same disk."""

    def __init__(self, config: EngineConfig | None = None, *, can_cut: bool = True) -> None:
        self.disk = FakeDisk()
        self._config = config or fake_config(cells=1024, sequences=8)
        self._can_cut = can_cut
        self._choose = random.Random(5)
        self.start()

    def start(self) -> None:
        self.run = EngineRun(self._config, can_cut=self._can_cut)
        self.run.engine.attach_disk(self.disk, self.disk.open())

    def quit(self) -> None:
        self.run.rest()
        self.run.engine.close()

    def words(self, count: int) -> list[int]:
        return self._choose.choices(range(256), k=count)

    def turn(
        self,
        history: list[int],
        num_new: int,
        options: RequestOptions = IN_FRONT,
        num_answer: int = 20,
    ) -> tuple[int, list[int]]:
        """Ask something more. Gives how many tokens were read, and the history with the answer."""
        prompt = history + self.words(num_new)
        number = self.run.submit(prompt, options=options, max_tokens=num_answer)
        self.run.finish()
        self.run.check_answer(number)
        timings = self.run.timings(number)
        held = timings.cached_tokens + timings.restored_tokens
        assert timings.prefilled_tokens + held == len(prompt)
        return timings.prefilled_tokens, prompt + self.run.tokens[number]

    def again(self, prompt: list[int], options: RequestOptions = IN_FRONT) -> int:
        """How many tokens of this prompt are read."""
        return self.turn(prompt, 0, options, 1)[0]


def durable(owner: str) -> RequestOptions:
    return RequestOptions(belonging=Belonging(owner=owner, is_durable=True))
