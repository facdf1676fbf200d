"""What the file of the document library is, among the files of the app."""

from app.documents.migrations import STEPS
from app.history.database import Holding

LIBRARY = Holding(
    name="document library",
    steps=STEPS,
    is_only_copy=False,
    if_damaged="Delete it: it is made again from your files, once you add them again.",
    text_indexes=("passage_fts",),
)
