"""The users that other programs named at /v1 lately: whose KV is still somebody's."""

import time
from collections.abc import Callable

from sqlite_utils import Database as Tables

from app.history.database import Database

KEPT_S = 30 * 86400.0
NOTED_EVERY_S = 86400.0


class Programs:
    """Owners, as `program_owner` names them, and when each was heard of last.

    A user cannot be deleted as a conversation can; who has been silent for 30 days is forgotten.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._noted: dict[str, float] = {}

    async def note(self, owner: str) -> None:
        """This user is here. Written once a day: an answer should not wait for the disk."""
        now = self._clock()
        if owner in self._noted and now - self._noted[owner] < NOTED_EVERY_S:
            return
        await self._database.run(
            lambda tables: tables.execute(
                "insert into program_user(owner, last_used) values (?, ?)"
                " on conflict(owner) do update set last_used = excluded.last_used",
                [owner, now],
            )
        )
        self._noted[owner] = now

    async def owners(self) -> list[str]:
        """Who is remembered; those silent for too long are forgotten here."""

        def read(tables: Tables) -> list[str]:
            tables.execute("delete from program_user where last_used < ?", [self._clock() - KEPT_S])
            return [row["owner"] for row in tables.query("select owner from program_user")]

        return await self._database.run(read)
