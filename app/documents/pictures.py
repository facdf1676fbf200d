"""Pages of PDFs and of pictures as they look, drawn when somebody looks at one.

By a process of its own, so that nobody waits for a file that is being taken in; it ends when none
was asked for a while.
"""

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from app.documents.document import FileState, Unreadable
from app.documents.page_picture import PagePicture, PictureWish
from app.documents.page_view import PageView, place_of
from app.documents.reading import Limits, Reader
from app.documents.rest import Rest

REST_S = 60.0
LIMITS = Limits(seconds=20, seconds_a_page=0)


class Drawer(Protocol):
    """Who draws, in another process."""

    async def draw(self, path: Path, wish: PictureWish, *, password: str = "") -> PagePicture:
        """Raises Unreadable."""
        ...

    async def close(self) -> None: ...


class Pictures:
    """Owned by the event loop."""

    def __init__(self, drawer: Drawer | None = None, rest_s: float = REST_S) -> None:
        self._drawer = drawer or Reader(limits=LIMITS)
        self._rest = Rest(self._drawer.close, rest_s)
        self._num_drawing = 0

    async def of(self, view: PageView, password: str = "") -> PagePicture:
        """The page with its words. Raises Unreadable."""
        place = await place_of(view)
        self._num_drawing += 1
        try:
            await self._rest.wake()
            picture = await self._drawer.draw(Path(place.path), view.wish, password=password)
        finally:
            self._num_drawing -= 1
            # Another one's picture may still be drawn: the last one's end begins the rest.
            if not self._num_drawing:
                self._rest.begin()
        if picture.sha256 != view.sha256:
            raise Unreadable(
                FileState.FAILED,
                f"{place.path} has changed since it was read: this is the text as it was read.",
            )
        return replace(picture, boxes=view.boxes) if view.boxes else picture

    async def close(self) -> None:
        await self._rest.wake()
        await self._drawer.close()
