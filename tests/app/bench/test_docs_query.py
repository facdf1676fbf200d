"""Questions to a library of plain texts."""

from app.bench.docs_query import asked


async def test_every_question_has_its_time() -> None:
    found = await asked(300, 5)
    assert 200 <= found.num_passages <= 400
    assert len(found.wall_ms) == len(found.processor_ms) == 5
    assert all(ms > 0 for ms in found.wall_ms)
