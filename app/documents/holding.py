"""What the file of the document library is, among the files of the app."""

from app.documents.migrations import STEPS
from app.history.database import Holding

LIBRARY = Holding(
    name="document library",
    steps=STEPS,
    is_only_copy=False,
    if_damaged=(
        "Move it away and add your folders again: what was read is made anew from your files, and"
        " only which collections they were in is lost."
    ),
    text_indexes=("passage_fts",),
)
