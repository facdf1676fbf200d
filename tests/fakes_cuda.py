"""An installation for the graphics card that takes no time, fetches nothing, and waits if told."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from app.cuda.environment import Made
from app.cuda.installation import Installation, Standing
from app.cuda.pip import Hear
from app.cuda.plan import Plan, WheelFile
from app.models.connections import Connections
from app.paths import Paths
from app.version import VERSION
from engine.errors import InglenookError

GB = 10**9
PLAN = Plan(
    python="3.11.7",
    files=(
        WheelFile(name="torch", version="2.99.0", url="https://e.org/t.whl", num_bytes=2 * GB),
        WheelFile(name="inglenook", version=VERSION, url="file:///i.whl", num_bytes=10**6),
    ),
    free_bytes=90 * GB,
)
MADE = Made(version=VERSION, torch="2.99.0", python="3.11.7", num_bytes=5 * GB)
NOTHING = Standing(gpus=(), useless="", not_yet="", made=None, obstacle="", is_ours=False)


class FakeCuda(Installation):
    """`stands` is what is found; `gate` holds an installation up until it is set."""

    def __init__(self, paths: Paths) -> None:
        super().__init__(paths, Connections(paths.connections))
        self.stands = NOTHING
        self.gate = asyncio.Event()
        self.error: InglenookError | None = None
        self.done: list[str] = []

    async def standing(self) -> Standing:
        return self.stands

    async def look(
        self, torch_from: str = "", *, anyway: bool = False, hear: Hear = lambda line: None
    ) -> Plan:
        self.done.append(f"look {torch_from} {anyway}")
        if self.error is not None:
            raise self.error
        self.plan = PLAN
        return PLAN

    async def install(
        self, torch_from: str = "", *, anyway: bool = False, hear: Hear = lambda line: None
    ) -> Made:
        self.done.append(f"install {torch_from} {anyway}")
        hear("Downloading torch-2.99.0.whl (2 GB)")
        await self.gate.wait()
        self.plan = None
        self.stands = replace(self.stands, made=MADE)
        return MADE

    async def remove(self) -> bool:
        self.done.append("remove")
        self.stands = replace(self.stands, made=None)
        return True

    def again(self, stands: Standing = NOTHING, lines: Sequence[str] = ()) -> None:
        """As at the beginning, for the next test."""
        self.stands, self.plan, self.failure, self.error = stands, None, None, None
        self.gate, self.done, self.lines = asyncio.Event(), [], list(lines)
