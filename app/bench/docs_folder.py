"""How long it takes to see that a large folder is as it was, and that some files are not."""

from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from app.bench.docs_plain import plain_library

FILES_A_FOLDER = 100
ONE_IN = 100
"""So many files change where some do."""


class Rescans(NamedTuple):
    """Seconds, of each time."""

    unchanged: list[float]
    changed: list[float]


async def rescans(num_files: int, times: int) -> Rescans:
    """Of a folder with so many small files, in folders of a hundred."""
    async with plain_library() as (library, folder):
        places = [
            folder / str(number // FILES_A_FOLDER) / f"{number}.txt" for number in range(num_files)
        ]
        for number, place in enumerate(places):
            place.parent.mkdir(exist_ok=True)
            place.write_text(f"Note {number}: bring wood for the fire.")
        await library.add(folder)
        await library.settled()
        found = Rescans([], [])
        for turn in range(times):
            began = perf_counter()
            await library.look()
            await library.settled()
            found.unchanged.append(perf_counter() - began)
            for place in places[::ONE_IN]:
                _change(place, turn)
            began = perf_counter()
            await library.look()
            await library.settled()
            found.changed.append(perf_counter() - began)
        return found


def _change(place: Path, turn: int) -> None:
    with open(place, "a") as file:
        file.write(f" And again, the {turn}th time.")
