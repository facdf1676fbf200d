"""The library at a glance: counts that add up, a few of many files, what reading again costs."""

from functools import partial
from pathlib import Path

import pytest

from app.documents.document import FileState
from app.documents.library import Library
from app.documents.overview import (
    Wanted,
    backlog,
    cost_of,
    counts_by_root,
    overview,
)
from app.documents.pace import LONGEST_MS, Pace, note_pace, pace
from app.documents.rows import roots
from engine.errors import UsageError
from tests.app.documents.test_library import added, write
from tests.fakes_documents import FakeReader
from tests.waiting import until


async def test_counts_add_up_whatever_is_listed(library: Library, folder: Path) -> None:
    for number in range(30):
        write(folder / f"note {number:02}.txt", f"The river {number}.")
    write(folder / "deep/Empty.txt", "")
    write(folder / "bad.txt", "DAMAGED")
    await added(library, folder)
    found = await library.ask(lambda tables: overview(tables, Wanted(), 10))
    assert found.counts == {FileState.INDEXED: 30, FileState.DAMAGED: 1, FileState.EMPTY: 1}
    assert found.num_found == 32 and len(found.files) == 10
    (root,) = await library.ask(roots)
    assert (await library.ask(counts_by_root))[root.root_id] == found.counts

    wanted = Wanted(state="damaged")
    found = await library.ask(lambda tables: overview(tables, wanted, 10))
    assert [Path(file.path).name for file in found.files] == ["bad.txt"]
    assert sum(found.counts.values()) == 32 and found.num_found == 1
    wanted = Wanted(place=str(folder / "deep"), name="EMPT")
    found = await library.ask(lambda tables: overview(tables, wanted, 10))
    assert [Path(file.path).name for file in found.files] == ["Empty.txt"]
    await library.collect("work", folder / "deep")
    wanted = Wanted(collection="work")
    found = await library.ask(lambda tables: overview(tables, wanted))
    assert found.num_found == 1
    with pytest.raises(UsageError):
        await library.ask(lambda tables: overview(tables, Wanted(collection="play")))


async def test_a_root_that_is_away_is_counted_as_such(library: Library, folder: Path) -> None:
    write(folder / "a.txt", "The river Inn.")
    await added(library, folder)
    folder.rename(folder.with_name("elsewhere"))
    await library.look()
    found = await library.ask(lambda tables: overview(tables, Wanted(state="offline")))
    assert found.counts == {FileState.OFFLINE: 1} and found.num_found == 1
    assert (await library.ask(lambda tables: cost_of(tables, str(folder)))).num_files == 0


async def test_a_place_is_read_again_when_asked_and_its_cost_is_known_before(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    write(folder / "a.txt", "The river Inn.\fIt is long.")
    write(folder / "b.txt", "The river Rhine.")
    await added(library, folder)
    cost = await library.ask(lambda tables: cost_of(tables, str(folder)))
    assert (cost.num_files, cost.num_pages) == (2, 3)
    num_read = len(reader.read_paths)
    await library.read_again(folder / "a.txt")
    await library.settled()
    assert reader.read_paths[num_read:] == [str(folder / "a.txt")]
    assert [hit.page for hit in (await library.find("long")).hits] == [2]


async def test_reading_waits_while_it_is_paused_and_goes_on_where_it_was(
    library: Library, folder: Path, reader: FakeReader
) -> None:
    write(folder / "a.txt", "One.\fTwo.\fThree.")
    reader.gate.clear()
    await library.add(folder)
    await until(lambda: reader.read_paths)
    library.pause()
    reader.gate.set()
    await until(lambda: library.at_work is not None and library.at_work.num_pages == 3)
    await library.rested(0.05)
    left = await library.ask(backlog)
    assert library.is_paused and left.num_files == 1 and left.num_bytes > 0
    library.go_on()
    await library.settled()
    assert not library.is_paused and len(reader.read_paths) == 1
    assert (await library.ask(backlog)).num_files == 0
    # Who adds something wants it read.
    library.pause()
    await added(library, write(folder.with_name("b.txt"), "Four."))
    assert len(reader.read_paths) == 2


async def test_the_pace_knows_how_long_a_small_file_takes(library: Library) -> None:
    add = library._store.run
    await add(lambda tables: note_pace(tables, num_pages=90, num_bytes=10**7, seconds=10))
    before = await library.ask(pace)
    assert before is not None and before.seconds_per_file == 0
    for seconds in (0.01, 0.03):
        each = partial(note_pace, num_pages=1, num_bytes=20, seconds=seconds)
        await add(each)
    found = await library.ask(pace)
    assert found is not None and found.seconds_per_file == pytest.approx(0.02)
    assert found.seconds(3_000, 60_000) == pytest.approx(60)


async def test_the_pace_is_that_of_what_was_read_lately(library: Library) -> None:
    assert await library.ask(pace) is None
    add = library._store.run
    await add(lambda tables: note_pace(tables, num_pages=100, num_bytes=2000, seconds=10))
    assert await library.ask(pace) == Pace(10.0, 200.0, 10.0)
    long = LONGEST_MS / 1000
    await add(lambda tables: note_pace(tables, num_pages=1, num_bytes=1, seconds=10 * long))
    slow = await library.ask(pace)
    await add(lambda tables: note_pace(tables, num_pages=10**6, num_bytes=1, seconds=10 * long))
    fast = await library.ask(pace)
    assert slow is not None and fast is not None
    assert slow.pages_per_s < 0.1 and fast.pages_per_s > 50
