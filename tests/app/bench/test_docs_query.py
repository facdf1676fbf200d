"""Questions to a library of plain texts."""

from app.bench.docs_query import asked
from app.documents.embedding.choice import ENGLISH
from app.documents.embedding.model_files import is_there


async def test_every_question_has_its_time() -> None:
    found = await asked(300, 5)
    assert 200 <= found.num_passages <= 400
    assert len(found.wall_ms) == len(found.processor_ms) == 5
    assert all(ms > 0 for ms in found.wall_ms)
    assert len(found.with_vectors_ms) == (5 if is_there(ENGLISH) else 0)
    assert all(ms > 0 for ms in found.with_vectors_ms)
