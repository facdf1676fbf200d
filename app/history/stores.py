"""Where a conversation lies: in the history's file, or in memory when it must not reach the disk.

An id tells which, so nothing has to be looked up and nothing can be stored in the wrong place.
"""

from app.chat.belonging import is_temporary
from app.history.database import Database


class Stores:
    """The history, and beside it one that vanishes with the process; opened when it is needed."""

    def __init__(self, database: Database) -> None:
        self.lasting = database
        self._temporary: Database | None = None

    @property
    def temporary(self) -> Database:
        if self._temporary is None:
            self._temporary = Database(None)
        return self._temporary

    def of(self, some_id: str) -> Database:
        """The store of this conversation or message."""
        return self.temporary if is_temporary(some_id) else self.lasting

    def close(self) -> None:
        """Let go what is temporary; the history is closed by its owner."""
        if self._temporary is not None:
            self._temporary.close()
