"""`inglenook docs`: a person's own files from a terminal."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.amounts import counted, duration
from app.commands.ask import ask
from app.commands.console import Console, write_json
from app.commands.embedder import embedder, follow_vectors, status_as_json
from app.commands.options import Options
from app.commands.sum_up import sum_up
from app.documents.collections import collections
from app.documents.document import FileState, page_in_words
from app.documents.embedding.embeddings import EmbeddingStatus
from app.documents.embedding.wording import meaning_in_words
from app.documents.library import Library
from app.documents.ocr import is_installed
from app.documents.overview import (
    Counts,
    Status,
    cost_of_unread,
    counts_by_root,
    status_of,
)
from app.documents.roots import check_place
from app.documents.rows import LibraryFile, num_waiting, roots, under
from app.documents.scan import Sight, is_under
from app.documents.search import Hit
from app.services import Services
from app.visible import visible
from engine.errors import UsageError

PROGRESS_S = 1.0
"""So often a line of progress is written."""
SOUND = (FileState.INDEXED, FileState.WAITING)
BROKEN_OFF = (
    "Broken off: what is left is read by the app, while it runs or at its next start, or by the"
    " next `docs add`."
)


async def docs(services: Services, options: Options, console: Console) -> None:
    await services.documents.prepare()
    if options.action == "ask":
        await ask(services, options, console)
        return
    if options.action == "sum-up":
        await sum_up(services, options, console)
        return
    actions = {
        "add": add,
        "list": list_roots,
        "status": status,
        "search": search,
        "remove": remove,
    }
    if options.action == "embedder":
        await embedder(services, options, console)
        return
    await actions[options.action](services.documents, options, console)


async def add(library: Library, options: Options, console: Console) -> None:
    """Ends when everything was read. Broken off, it goes on at the next start or the next `add`.

    What can be taken in is, and then it raises UsageError for the rest.
    """
    places: list[Path] = []
    refused: list[str] = []
    left_out: list[str] = []
    for place in map(Path, options.files):
        try:
            sight = await library.add(
                place, collection=options.collection, password=options.password
            )
            places.append(place)
            left_out += left_out_in_words(sight)
            await _read_pictures(library, place, console)
        except UsageError as error:
            refused.append(str(error))
    if places:
        await _follow(library, places, console)
        await library.tidy()
        await follow_vectors(library, console)
        taken = [await _status(library, place) for place in places]
        _show(_together(taken), await library.embeddings.status(), options, console)
    for each in left_out:
        console.note(each)
    if refused:
        names = ", ".join(visible(str(place)) for place in places)
        said = f"Only {names} {'was' if len(places) == 1 else 'were'} taken in. " if places else ""
        raise UsageError(said + " ".join(refused))


async def _read_pictures(library: Library, place: Path, console: Console) -> None:
    """What was taken in before there was OCR; what that costs is said before it begins."""
    cost = await library.ask(lambda tables: cost_of_unread(tables, str(place)))
    if cost.num_pages and is_installed():
        console.note(
            f"OCR reads {counted(cost.num_pages, 'page')} of {counted(cost.num_files, 'file')}, for"
            f" about {duration(max(1, cost.seconds or 0))}."
        )
        await library.read_pictures(place)


def left_out_in_words(sight: Sight) -> list[str]:
    """What lies there and was not looked into."""
    said = []
    if sight.closed:
        others = len(sight.closed) - 1
        more = f" and {counted(others, 'other folder')}" if others else ""
        said.append(
            f"{visible(min(sight.closed))}{more} could not be looked into: give your user the right"
            " to read what lies there, and add it again."
        )
    if sight.own:
        own = ", ".join(visible(each) for each in sorted(sight.own))
        said.append(f"Left out is what belongs to Inglenook itself: {own}.")
    return said


async def _follow(library: Library, places: Sequence[Path], console: Console) -> None:
    conditions = [under("file.path", str(place)) for place in places]
    while num_left := await library.ask(
        lambda tables: sum(num_waiting(tables, *each) for each in conditions)
    ):
        await library.rested(PROGRESS_S)
        at_work = library.at_work
        if at_work is not None:
            page = f", page {at_work.num_read:,}" if at_work.num_read else ""
            of = f" of {at_work.num_pages:,}" if page and at_work.num_pages else ""
            by = " by OCR" if at_work.is_ocr else ""
            console.progress(
                f"{counted(num_left, 'file')} to read, now"
                f" {visible(Path(at_work.path).name)}{page}{of}{by}"
            )


async def list_roots(library: Library, options: Options, console: Console) -> None:
    there, by_root, named = await library.ask(
        lambda tables: (roots(tables), counts_by_root(tables), collections(tables))
    )
    away = await library.away()
    rows = []
    for root in there:
        counts = by_root.get(root.root_id, {})
        num_files = sum(counts.values())
        is_there = root.is_there and root.path not in away
        if not is_there:
            counts = {FileState.OFFLINE: num_files}
        rows.append(
            {
                "path": root.path,
                "is_folder": root.is_folder,
                "is_there": is_there,
                "files": num_files,
                "counts": _counts(counts),
            }
        )
        if not options.json:
            offline = "" if is_there else " (not there now)"
            console.write(f"{visible(root.path)}  {counted(num_files, 'file')}{offline}\n")
    if options.json:
        write_json(console, {"places": rows, "collections": named})
        return
    for name, paths in named.items():
        console.write(f"{visible(f'{name}: ' + ', '.join(paths))}\n")
    if not rows:
        console.note("There are no files yet: `inglenook docs add PATH` takes some in.")


async def status(library: Library, options: Options, console: Console) -> None:
    places: list[Path | None] = [Path(each) for each in options.files]
    for place in places:
        await _check_known(library, place)
    taken = [await _status(library, place, options.collection) for place in places or [None]]
    _show(_together(taken), await library.embeddings.status(), options, console)
    if library.notice:
        console.note(visible(library.notice))


async def _status(library: Library, place: Path | None, collection: str = "") -> Status:
    """As the files are now: who follows none has not noticed that a place is missing."""
    inside = "" if place is None else str(place)
    found = await library.ask(lambda tables: status_of(tables, inside, collection))
    away = await library.away()
    if not away:
        return found
    return Status(
        tuple(
            replace(file, state=FileState.OFFLINE)
            if any(is_under(file.path, each) for each in away)
            else file
            for file in found.files
        )
    )


async def _check_known(library: Library, place: Path | None) -> None:
    """Raises UsageError for a place of which nothing is in the library."""
    if place is not None:
        await library.ask(lambda tables: check_place(tables, str(place)))


def _together(taken: Sequence[Status]) -> Status:
    """Each file once."""
    found = {file.path: file for each in taken for file in each.files}
    return Status(tuple(found[path] for path in sorted(found)))


def _show(found: Status, vectors: EmbeddingStatus, options: Options, console: Console) -> None:
    if options.json:
        write_json(
            console,
            {
                "files": [_file(file) for file in found.files],
                "counts": _counts(found.counts),
                "vectors": status_as_json(vectors),
            },
        )
        return
    for file in found.files:
        if file.state not in SOUND or file.message:
            said = f": {file.message}" if file.message else ""
            console.write(f"{visible(f'{file.path}  {file.state.value}{said}')}\n")
    counts = [f"{num} {state.value}" for state, num in sorted(found.counts.items())]
    total = counted(len(found.files), "file")
    console.write(f"{total}: {', '.join(counts)}.\n" if counts else f"{total}.\n")
    if found.files and vectors.searched is not None:
        console.write(f"{meaning_in_words(vectors)}\n")


async def search(library: Library, options: Options, console: Console) -> None:
    names = (options.collection,) if options.collection else ()
    found = await library.find(options.text, collections=names)
    if options.json:
        write_json(
            console,
            {"hits": [_hit(hit) for hit in found.hits], "is_enough": found.is_enough},
        )
        return
    for hit in found.hits:
        heading = f", {hit.heading[-1]}" if hit.heading else ""
        place = visible(f"{hit.paths[0]}, {page_in_words(hit.page, hit.label)}{heading}")
        console.write(f"{place}\n    {hit.snippet.text}\n")
        for path in hit.paths[1:]:
            console.write(f"    also {visible(path)}\n")
    if not found.hits:
        console.note(f"Nothing was found for {options.text!r}.")
    elif not found.is_enough:
        console.note("None of these has much of what was asked for.")


async def remove(library: Library, options: Options, console: Console) -> None:
    num_files = 0
    for each in options.files:
        num_files += await library.remove(Path(each), collection=options.collection)
    if options.json:
        write_json(console, {"removed": num_files})
    elif options.collection:
        console.write(f"It is no longer in {options.collection!r}, and still in the library.\n")
    else:
        console.write(
            f"{counted(num_files, 'file')} left the library, with all that was read of them. The"
            " files themselves are where they were.\n"
        )


def _file(file: LibraryFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "status": file.state.value,
        "pages": file.num_pages,
        "pages_by_ocr": file.num_ocr,
        "pages_for_ocr": file.num_unread,
        "message": file.message,
    }


def _counts(counts: Counts) -> dict[str, int]:
    return {state.value: counts.get(state, 0) for state in FileState}


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "path": hit.paths[0],
        "paths": list(hit.paths),
        "page": hit.page,
        "page_to": hit.page_to,
        "label": hit.label,
        "heading": list(hit.heading),
        "score": hit.score,
        "text": hit.text,
        "snippet": hit.snippet.text,
        "marks": [list(mark) for mark in hit.snippet.marks],
    }
