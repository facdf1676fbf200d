"""A page as a person looks at it, and what becomes of it when its file changes or goes."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from app.documents.citation import Span
from app.documents.document import FileState, Unreadable
from app.documents.library import Library
from app.documents.page_picture import Box, PagePicture, PictureWish
from app.documents.page_view import Stretch, document_of, place_of, stretch_of
from app.documents.pictures import Pictures
from engine.errors import UsageError
from tests.app.documents.test_grounds import quotation
from tests.app.documents.test_library import added, write
from tests.waiting import until

TEXT = "The river Inn.\fIt is long. It is blue."


class FakeDrawer:
    def __init__(self, sha256: str) -> None:
        self.sha256 = sha256
        self.wishes: list[PictureWish] = []
        self.is_closed = False

    async def draw(self, path: Path, wish: PictureWish, *, password: str = "") -> PagePicture:
        self.wishes.append(wish)
        self.is_closed = False
        box = Box(0, 0, 1, 1)
        return PagePicture(png=b"", width=1, height=1, boxes=(box,), sha256=self.sha256)

    async def close(self) -> None:
        self.is_closed = True


class SlowDrawer(FakeDrawer):
    """Draws a page when its own gate is set."""

    def __init__(self, sha256: str) -> None:
        super().__init__(sha256)
        self.gates = [asyncio.Event(), asyncio.Event()]

    async def draw(self, path: Path, wish: PictureWish, *, password: str = "") -> PagePicture:
        gate = self.gates[len(self.wishes)]
        picture = await super().draw(path, wish, password=password)
        await gate.wait()
        return picture


@pytest.fixture
async def file(library: Library, folder: Path) -> Path:
    path = write(folder / "a.txt", TEXT)
    await added(library, folder)
    return path


async def test_a_page_shows_what_is_meant_of_it(library: Library, file: Path) -> None:
    (hit,) = (await library.find("blue")).hits
    view = await library.page(
        hit.document_id, 2, Stretch(page=2, page_to=2, start=hit.start, end=hit.end)
    )
    assert view.quote == hit.text and view.num_pages == 2 and not view.can_be_drawn
    view = await library.page(hit.document_id, 2, Stretch(page=1, page_to=2, start=4, end=5))
    assert view.quote == "It is"
    assert view.wish == PictureWish(number=2, words="It is", num_before=0)
    view = await library.page(hit.document_id, 1, Stretch(page=1, page_to=2, start=4, end=5))
    assert view.quote == "river Inn." and view.wish.num_before == 3
    assert (await library.page(hit.document_id, 1)).quote == ""
    # Of another page, or from nowhere.
    stretch = Stretch(page=2, page_to=2, start=900, end=10**9)
    assert (await library.page(hit.document_id, 1, stretch)).quote == ""
    assert (await library.page(hit.document_id, 2, stretch)).quote == ""
    with pytest.raises(UsageError, match="There is no page 3: this file has 2"):
        await library.page(hit.document_id, 3)
    with pytest.raises(UsageError, match="no longer in the library"):
        await library.page(999, 1)


async def test_a_file_that_has_changed_or_gone_is_said(library: Library, file: Path) -> None:
    (hit,) = (await library.find("blue")).hits
    view = await library.page(hit.document_id, 2)
    assert (await place_of(view)).path == str(file)
    # The same bytes, written anew.
    file.write_text(TEXT)
    assert (await place_of(view)).path == str(file)
    file.write_text("Other words.")
    with pytest.raises(Unreadable, match="has changed since it was read: this is the text as"):
        await place_of(view)
    file.unlink()
    with pytest.raises(Unreadable, match="cannot be opened now") as caught:
        await place_of(view)
    assert caught.value.state is FileState.OFFLINE


async def test_a_picture_is_of_the_bytes_that_were_read(library: Library, file: Path) -> None:
    (hit,) = (await library.find("blue")).hits
    view = await library.page(hit.document_id, 2)
    drawer = FakeDrawer(view.sha256)
    pictures = Pictures(drawer, rest_s=0.01)
    assert (await pictures.of(view)).boxes
    assert drawer.wishes == [PictureWish(number=2)]
    # Its process ends when nobody has asked for a while.
    await until(lambda: drawer.is_closed)
    drawer.sha256 = "another"
    with pytest.raises(Unreadable, match="has changed since it was read"):
        await pictures.of(view)
    await pictures.close()
    assert drawer.is_closed


async def test_nobody_rests_while_another_page_is_drawn(library: Library, file: Path) -> None:
    (hit,) = (await library.find("blue")).hits
    view = await library.page(hit.document_id, 2)
    drawer = SlowDrawer(view.sha256)
    pictures = Pictures(drawer, rest_s=0)
    first = asyncio.create_task(pictures.of(view))
    await until(lambda: len(drawer.wishes) == 1)
    second = asyncio.create_task(pictures.of(view))
    await until(lambda: len(drawer.wishes) == 2)
    drawer.gates[0].set()
    assert (await first).boxes
    # As many turns as a rest of no time would need.
    for _ in range(20):
        await asyncio.sleep(0)
    assert not drawer.is_closed
    drawer.gates[1].set()
    assert (await second).boxes
    await until(lambda: drawer.is_closed)


async def test_a_quotation_is_found_again_in_its_document(library: Library, file: Path) -> None:
    (hit,) = (await library.find("blue")).hits
    assert await library.ask(lambda tables: document_of(tables, hit.sha256)) == hit.document_id
    assert await library.ask(lambda tables: document_of(tables, "00")) is None
    quoted = quotation(page=2, page_to=2, start=0, end=11, text="It is blue.")
    text = "It is long. It is blue."
    # Its place is another one since it was read by other rules.
    assert stretch_of(quoted, None, text) == Stretch(page=2, page_to=2, start=12, end=23)
    part = stretch_of(quoted, Span(6, 10), text)
    assert text[part.start : part.end] == "blue"
    gone = stretch_of(quoted, Span(6, 10), "Nothing.")
    assert gone.start == gone.end


ONE, TWO = "The river Inn. It comes from", "the Maloja pass. It is long."
OVERLEAF = "It comes from\nthe Maloja pass. It is"


@pytest.mark.parametrize(
    ("quote", "place", "shown"),
    [
        ("comes from", (2, 2), "comes from"),
        ("It comes from\nthe Maloja pass.", (2, 3), "It comes from"),
        ("\nthe Maloja pass.", (3, 3), "the Maloja pass."),
        ("Maloja", (3, 3), "Maloja"),
        ("It is", (3, 3), "It is"),
    ],
)
def test_a_part_of_what_goes_overleaf_is_on_its_own_page(
    quote: str, place: tuple[int, int], shown: str
) -> None:
    over = quotation(page=2, page_to=3, start=15, end=22, text=OVERLEAF)
    at = OVERLEAF.rindex(quote)
    stretch = stretch_of(over, Span(at, at + len(quote)), ONE)
    assert (stretch.page, stretch.page_to) == place
    texts = {2: ONE, 3: TWO}
    text = texts[stretch.page]
    assert text[slice(*stretch.on(stretch.page, text))] == shown
    whole = "\n".join(
        texts[n][slice(*stretch.on(n, texts[n]))] for n in range(place[0], place[1] + 1)
    )
    assert whole == quote.lstrip("\n")


def test_of_what_goes_overleaf_all_is_meant_where_no_part_is_known() -> None:
    over = quotation(page=2, page_to=3, start=15, end=22, text=OVERLEAF)
    whole = Stretch(page=2, page_to=3, start=15, end=22)
    assert stretch_of(over, None, ONE) == whole
    assert stretch_of(over, Span(3, 3), ONE) == whole
    # It was read by other rules, or goes over more pages than two.
    assert stretch_of(over, Span(20, 26), "The river Inn: it comes from") == whole
    longer = replace(over, text=OVERLEAF.replace("\n", "\n\n"))
    assert stretch_of(longer, Span(20, 26), ONE) == whole
