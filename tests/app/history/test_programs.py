"""Users of other programs are remembered for as long as they come."""

from app.history.database import Database
from app.history.programs import Programs

DAY = 86400.0


async def test_a_user_is_known_for_thirty_days_after_the_last_visit(database: Database) -> None:
    now = 0.0
    programs = Programs(database, lambda: now)
    await programs.note("v1:a")
    await programs.note("v1:b")
    now = 20 * DAY
    await programs.note("v1:b")
    now = 29 * DAY
    assert sorted(await programs.owners()) == ["v1:a", "v1:b"]
    now = 31 * DAY
    assert await programs.owners() == ["v1:b"]


async def test_a_busy_user_is_written_down_once_a_day(database: Database) -> None:
    now = 1000.0
    programs = Programs(database, lambda: now)
    await programs.note("v1:a")
    now += 60
    await programs.note("v1:a")
    # Another process sees what is in the file.
    stored = await database.run(lambda tables: list(tables.query("select * from program_user")))
    assert stored == [{"owner": "v1:a", "last_used": 1000.0}]
    now += DAY
    await programs.note("v1:a")
    assert await Programs(database, lambda: now + 29.5 * DAY).owners() == ["v1:a"]
