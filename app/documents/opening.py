"""The library of a home, with the process that reads for it."""

from app.documents.library import Library
from app.documents.reading import Reader
from app.paths import Paths


def open_library(paths: Paths, *, is_followed: bool, only_reads: bool = False) -> Library:
    """`is_followed`: this process runs as long as the home is used, so it notices what changes.
    Raises HistoryError for a file that cannot be used."""
    library = Library(
        paths.documents, Reader(), paths.own, received=paths.received, only_reads=only_reads
    )
    if is_followed:
        library.follow()
    return library
