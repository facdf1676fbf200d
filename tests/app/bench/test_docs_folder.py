"""A large folder that is looked at again."""

from app.bench.docs_folder import rescans


async def test_a_folder_is_looked_at_unchanged_and_changed() -> None:
    found = await rescans(120, 2)
    assert len(found.unchanged) == len(found.changed) == 2
