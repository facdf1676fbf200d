"""`inglenook docs`: a person's own files from a terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.amounts import counted
from app.commands.ask import ask
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.documents.document import FileState
from app.documents.library import Library, Status
from app.documents.rows import LibraryFile
from app.documents.search import Hit
from app.services import Services

PROGRESS_S = 1.0
"""So often a line of progress is written."""
SOUND = (FileState.INDEXED, FileState.WAITING)


async def docs(services: Services, options: Options, console: Console) -> None:
    await services.documents.prepare()
    if options.action == "ask":
        await ask(services, options, console)
        return
    actions = {
        "add": add,
        "list": list_roots,
        "status": status,
        "search": search,
        "remove": remove,
    }
    await actions[options.action](services.documents, options, console)


async def add(library: Library, options: Options, console: Console) -> None:
    """Ends when everything was read. Broken off, it goes on at the next start or the next `add`."""
    places = [Path(each) for each in options.files]
    for place in places:
        await library.add(place, collection=options.collection, password=options.password)
    await _follow(library, places, console)
    await library.tidy()
    taken = [await library.status(place=place) for place in places]
    _show(_together(taken), options, console)


async def _follow(library: Library, places: Sequence[Path], console: Console) -> None:
    while num_left := sum([await library.num_waiting(place) for place in places]):
        await library.rested(PROGRESS_S)
        at_work = library.at_work
        if at_work is not None:
            page = f", page {at_work.num_read}" if at_work.num_read else ""
            of = f" of {at_work.num_pages}" if page and at_work.num_pages else ""
            console.note(
                f"{counted(num_left, 'file')} to read, now {Path(at_work.path).name}{page}{of}"
            )


async def list_roots(library: Library, options: Options, console: Console) -> None:
    collections = await library.collections()
    rows = []
    for root in await library.roots():
        counts = (await library.status(place=Path(root.path))).counts
        num_files = sum(counts.values())
        rows.append(
            {
                "path": root.path,
                "is_folder": root.is_folder,
                "is_there": root.is_there,
                "files": num_files,
                "counts": _counts(counts),
            }
        )
        if not options.json:
            offline = "" if root.is_there else " (not there now)"
            console.write(f"{root.path}  {counted(num_files, 'file')}{offline}\n")
    if options.json:
        write_json(console, {"places": rows, "collections": collections})
        return
    for name, paths in collections.items():
        console.write(f"{name}: {', '.join(paths)}\n")
    if not rows:
        console.note("There are no files yet: `inglenook docs add PATH` takes some in.")


async def status(library: Library, options: Options, console: Console) -> None:
    places: list[Path | None] = [Path(each) for each in options.files]
    taken = [
        await library.status(place=place, collection=options.collection)
        for place in places or [None]
    ]
    _show(_together(taken), options, console)


def _together(taken: Sequence[Status]) -> Status:
    """Each file once."""
    found = {file.path: file for each in taken for file in each.files}
    return Status(tuple(found[path] for path in sorted(found)))


def _show(found: Status, options: Options, console: Console) -> None:
    if options.json:
        write_json(
            console,
            {"files": [_file(file) for file in found.files], "counts": _counts(found.counts)},
        )
        return
    for file in found.files:
        if file.state not in SOUND or file.message:
            said = f": {file.message}" if file.message else ""
            console.write(f"{file.path}  {file.state.value}{said}\n")
    counts = [f"{num} {state.value}" for state, num in sorted(found.counts.items())]
    total = counted(len(found.files), "file")
    console.write(f"{total}: {', '.join(counts)}.\n" if counts else f"{total}.\n")


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
        label = f" ({hit.label})" if hit.label and hit.label != str(hit.page) else ""
        heading = f", {hit.heading[-1]}" if hit.heading else ""
        console.write(f"{hit.paths[0]}, page {hit.page}{label}{heading}\n    {hit.snippet.text}\n")
        for path in hit.paths[1:]:
            console.write(f"    also {path}\n")
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
        "message": file.message,
    }


def _counts(counts: dict[FileState, int]) -> dict[str, int]:
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
