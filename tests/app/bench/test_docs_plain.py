"""A library of plain texts without a reading process."""

from app.bench.docs_plain import PAGE_END, plain_library


async def test_plain_texts_are_found_by_their_page() -> None:
    async with plain_library() as (library, folder):
        (folder / "a.txt").write_text(f"The Inn.{PAGE_END}The Rhine.")
        await library.add(folder)
        await library.settled()
        (hit,) = (await library.find("Rhine")).hits
        assert hit.page == 2
