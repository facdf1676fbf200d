"""The library of a home, as the app opens it."""

from app.documents.embedding.choice import NONE, EmbedderChoice
from app.documents.opening import open_library
from app.paths import Paths


async def test_the_library_of_a_home_knows_what_belongs_to_the_home(paths: Paths) -> None:
    paths.create()
    library = open_library(
        paths,
        is_followed=False,
        choose=lambda: EmbedderChoice(NONE),
        is_busy=lambda: False,
        on_gone=lambda sha256: None,
    )
    assert library.is_own(paths.api_key) and library.is_own(paths.models)
    assert not library.is_own(paths.data.parent / "papers")
    await library.close()
