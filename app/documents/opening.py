"""The library of a home, with the process that reads for it."""

from collections.abc import Callable

from app.documents.embedding.choice import EmbedderChoice
from app.documents.embedding.embeddings import PATIENCE_S, Embedding
from app.documents.embedding.process import START_S
from app.documents.library import Library
from app.documents.reading import Reader
from app.documents.scans import Scans
from app.paths import Paths


def open_library(
    paths: Paths,
    *,
    is_followed: bool,
    choose: Callable[[], EmbedderChoice],
    is_busy: Callable[[], bool],
    on_gone: Callable[[str], None],
    only_reads: bool = False,
) -> Library:
    """`is_followed`: this process runs as long as the home is used, so it notices what changes.
    `choose` and `is_busy`: as in Embedding; `on_gone`: as in Library. Raises HistoryError for a
    file that cannot be used."""
    reader = Reader()
    # A command has one question, for which the process must start.
    patience_s = PATIENCE_S if is_followed else START_S
    library = Library(
        paths.documents,
        reader,
        paths.own,
        received=paths.received,
        scans=Scans(reader),
        embedding=Embedding(paths.embedders, choose, is_busy, patience_s=patience_s),
        on_gone=on_gone,
        only_reads=only_reads,
    )
    if is_followed:
        library.follow()
    return library
