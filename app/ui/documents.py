"""The user's own files in words, for the page's sheet that adds, lists, searches and shows them."""

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from app.amounts import counted, duration
from app.documents.document import FileState, PageFlag, page_in_words
from app.documents.embedding.choice import ENGLISH, MULTILINGUAL, NAMES, NONE
from app.documents.embedding.embeddings import EmbeddingStatus
from app.documents.embedding.trial import Trial
from app.documents.embedding.wording import cost_of_vectors, meaning_in_words
from app.documents.intake import AtWork
from app.documents.ocr import is_installed, remedy
from app.documents.overview import Backlog, Cost, Counts, Overview
from app.documents.page_view import PageView, Stretch
from app.documents.quotation import Quotation
from app.documents.rows import LibraryFile, Root, stored
from app.documents.scan import is_under
from app.documents.search import Found, Hit
from app.visible import visible

STATES = {
    FileState.INDEXED: "read",
    FileState.WAITING: "waiting",
    FileState.NO_TEXT: "without text",
    FileState.NEEDS_PASSWORD: "need a password",
    FileState.DAMAGED: "damaged",
    FileState.FAILED: "could not be read",
    FileState.EMPTY: "empty",
    FileState.TOO_LARGE: "too large",
    FileState.UNSUPPORTED: "of a kind that is not read",
    FileState.OFFLINE: "not there now",
}
"""In the order in which they are shown."""
OF_ONE = {FileState.NEEDS_PASSWORD: "needs a password"}

NO_LONGER_THERE = (
    "What was read of this file is no longer in the library: the file has changed since, was"
    " deleted, or was taken out of it. This is the passage as the model was given it."
)

FLAGS = {
    PageFlag.PICTURE_ONLY: "This page is a picture without text.",
    PageFlag.OCR: "This text was read by OCR from the picture of the page, and may have errors.",
    PageFlag.GARBLED: "The letters of this page make no words.",
    PageFlag.HIDDEN_LEFT_OUT: "Text that nobody sees on this page was left out.",
}

NOTHING_SEEN = "This page is a picture, and OCR found no text on it."

LONGEST_LABEL = 40

EMBEDDERS = {
    NONE: "by words alone",
    ENGLISH: "and by meaning, in English",
    MULTILINGUAL: "and by meaning, in many languages",
}


def name_of(path: str) -> str:
    return visible(PurePath(path).name or path)


def _words(state: FileState, num: int) -> str:
    return OF_ONE.get(state, STATES[state]) if num == 1 else STATES[state]


def counts_in_words(counts: Counts) -> list[dict[str, Any]]:
    return [
        {"state": state.value, "words": _words(state, counts[state]), "num": counts[state]}
        for state in STATES
        if counts.get(state)
    ]


def place_rows(
    roots: Iterable[Root],
    counts: Mapping[int, Counts],
    unread: Mapping[int, int],
    collections: Mapping[str, list[str]],
    received: str,
) -> list[dict[str, Any]]:
    rows = []
    for root in roots:
        own = counts.get(root.root_id, {})
        rows.append(
            {
                "path": stored(root.path),
                "name": _place_name(root.path, received),
                "where": visible(root.path),
                "is_there": root.is_there,
                "is_received": root.path == received,
                "total": counted(sum(own.values()), "file"),
                "counts": counts_in_words(own),
                "pictures": pictures_in_words(unread.get(root.root_id, 0)),
                "has_ocr": is_installed() and bool(unread.get(root.root_id)),
                "collections": collections_of(root.path, collections),
            }
        )
    return rows


def pictures_in_words(num_unread: int) -> str:
    """What a person can do for pages that are pictures; empty where there are none."""
    if not num_unread:
        return ""
    have = "page has" if num_unread == 1 else "pages have"
    return f"{num_unread:,} {have} no text but a picture. {remedy()}"


def _place_name(path: str, received: str) -> str:
    return "Dropped on this page" if path == received else name_of(path)


def collection_rows(collections: Mapping[str, list[str]], received: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "places": [
                {
                    "path": stored(path),
                    "name": _place_name(path, received),
                    "where": visible(path),
                }
                for path in paths
            ],
        }
        for name, paths in collections.items()
    ]


def collections_of(path: str, collections: Mapping[str, list[str]]) -> list[str]:
    """Those that this place was put into itself."""
    return [name for name, paths in collections.items() if path in paths]


def file_rows(
    found: Overview, collections: Mapping[str, list[str]], received: str
) -> dict[str, Any]:
    return {
        "counts": counts_in_words(found.counts),
        "total": sum(found.counts.values()),
        "num_found": found.num_found,
        "files": [file_row(file, collections, received) for file in found.files],
    }


def file_row(
    file: LibraryFile, collections: Mapping[str, list[str]], received: str
) -> dict[str, Any]:
    pages = counted(file.num_pages, "page") if file.num_pages else ""
    return {
        "path": stored(file.path),
        "name": name_of(file.path),
        "where": visible(str(PurePath(file.path).parent)),
        "state": file.state.value,
        "words": _words(file.state, 1),
        "is_sound": file.state is FileState.INDEXED,
        "needs_password": file.state is FileState.NEEDS_PASSWORD,
        "pages": pages,
        "message": visible(file.message),
        "has_ocr": is_installed() and file.num_unread > 0,
        "is_received": is_under(file.path, received),
        "document": file.document_id if file.num_pages else None,
        "collections": collections_of(file.path, collections),
    }


def progress(at_work: AtWork | None, left: Backlog, is_paused: bool) -> dict[str, Any]:
    """What is being read. `share` is how much of the file that is being read, or None."""
    if not left.num_files:
        return {"is_reading": False, "is_paused": is_paused, "words": "", "share": None}
    parts = [f"{counted(left.num_files, 'file')} to read"]
    share = None
    if at_work is not None:
        of = f" of {at_work.num_pages:,}" if at_work.num_pages else ""
        by = " by OCR" if at_work.is_ocr else ""
        page = f", page {at_work.num_read:,}{of}{by}" if at_work.num_read else ""
        if at_work.is_stored:
            page = f", all of {counted(at_work.num_pages, 'page')}, which are stored now"
        parts.append(f"now {name_of(at_work.path)}{page}")
        is_between = at_work.num_pages and not at_work.is_stored
        share = at_work.num_read / at_work.num_pages if is_between else None
    seconds = seconds_left(at_work, left)
    if is_paused:
        parts.append("paused")
    elif seconds is not None:
        parts.append(f"about {duration(max(1, seconds))} left")
    words = "; ".join(parts)
    return {"is_reading": True, "is_paused": is_paused, "words": words, "share": share}


def seconds_left(at_work: AtWork | None, left: Backlog) -> float | None:
    """By the pace of what was read before, and of what is read now where its pages are known."""
    seconds = left.pace.seconds(left.num_files, left.num_bytes) if left.pace else None
    if at_work is None or not at_work.num_read or not at_work.num_pages:
        return seconds
    if at_work.is_stored and left.num_files == 1:
        # Of a long text that takes as long as the reading.
        return None
    of_this = at_work.seconds / at_work.num_read * (at_work.num_pages - at_work.num_read)
    if left.num_files == 1:
        return of_this
    return None if seconds is None else max(seconds, of_this)


def cost_in_words(cost: Cost, path: str) -> str:
    pages = f" with {counted(cost.num_pages, 'page')}" if cost.num_pages else ""
    if cost.num_ocr:
        pages += f", {cost.num_ocr:,} of them by OCR,"
    takes = (
        f"That takes about {duration(max(1, cost.seconds))}, as fast as this computer has read so"
        " far."
        if cost.seconds is not None
        else "How long that takes is not known yet."
    )
    return (
        f"Read {counted(cost.num_files, 'file')}{pages} of {name_of(path)} again? {takes} What"
        " was read of them can be found meanwhile."
    )


def ocr_in_words(cost: Cost, path: str) -> str:
    return (
        f"Have OCR read {counted(cost.num_pages, 'page')} without text of"
        f" {counted(cost.num_files, 'file')} in {name_of(path)}? That takes about"
        f" {duration(max(1, cost.seconds or 0))}, and nothing else is read again."
    )


def removal_in_words(path: str, num_files: int, *, is_ours: bool) -> str:
    what = f"{name_of(path)} ({counted(num_files, 'file')})"
    if is_ours:
        return (
            f"Delete Inglenook's own copy of {what}, with all that was read of it? What it was"
            " copied from stays where it is."
        )
    return (
        f"Take {what} out of the library, with all that was read of it? The files themselves stay"
        " where they are."
    )


def meaning_row(status: EmbeddingStatus) -> dict[str, Any]:
    """How it is searched, and what could be chosen instead."""
    chosen = status.choice.model
    names = [NONE, ENGLISH, MULTILINGUAL, *([] if chosen in NAMES else [chosen])]
    return {
        "words": visible(meaning_in_words(status)),
        "problem": visible(status.problem) if status.problem else "",
        "chosen": chosen,
        "models": [{"model": name, "words": EMBEDDERS.get(name, name_of(name))} for name in names],
    }


def embedder_in_words(trial: Trial | None) -> str:
    if trial is None:
        return "Search by words alone, and forget the vectors that were made?"
    return f"{visible(cost_of_vectors(trial))} Choose it?"


def hit_rows(found: Found) -> dict[str, Any]:
    return {"hits": [hit_row(hit) for hit in found.hits], "is_enough": found.is_enough}


def hit_row(hit: Hit) -> dict[str, Any]:
    heading = hit.heading[-1] if hit.heading else ""
    return {
        "document": hit.document_id,
        "name": name_of(hit.paths[0]),
        "paths": [visible(path) for path in hit.paths],
        "page": hit.page,
        "where": page_words(hit.page, hit.label),
        "heading": visible(heading) if heading != hit.label else "",
        "stretch": [hit.page, hit.page_to, hit.start, hit.end],
        "snippet": hit.snippet.text,
        "marks": [list(mark) for mark in hit.snippet.marks],
    }


def page_words(number: int, label: str) -> str:
    """How a page is called, in the room that there is for it."""
    label = visible(label)
    # A page of a text without pages is called by its heading, which may be a sentence.
    short = label if len(label) <= LONGEST_LABEL else f"{label[:LONGEST_LABEL].rstrip()}…"
    return page_in_words(number, short)


def page_row(view: PageView, notice: str, stretch: Stretch | None) -> dict[str, Any]:
    """`notice` is what is the matter with its file, or empty; `stretch` is what is meant."""
    flags = _flags_in_words(frozenset(map(PageFlag, view.flags)))
    return {
        "document": view.document_id,
        "name": name_of(view.places[0].path) if view.places else visible(view.title),
        "paths": [visible(place.path) for place in view.places],
        "number": view.number,
        "stretch": [stretch.page, stretch.page_to, stretch.start, stretch.end] if stretch else None,
        "where": page_words(view.number, view.label),
        "num_pages": view.num_pages,
        "can_be_drawn": view.can_be_drawn and not notice,
        "text": view.text,
        "start": view.start,
        "end": view.end,
        "notices": [each for each in (visible(notice), *flags) if each],
    }


def _flags_in_words(flags: frozenset[PageFlag]) -> list[str]:
    if PageFlag.OCR in flags and PageFlag.PICTURE_ONLY in flags:
        return [NOTHING_SEEN]
    # Where OCR saw nothing, the text is still the file's own.
    shown = flags - {PageFlag.OCR} if PageFlag.GARBLED in flags else flags
    return [FLAGS[flag] for flag in FLAGS if flag in shown]


def quotation_row(quotation: Quotation) -> dict[str, Any]:
    """A passage whose document is no longer in the library: it stands with its answer."""
    return {
        "document": None,
        "name": visible(quotation.name),
        "paths": [visible(path) for path in quotation.paths],
        "number": quotation.page,
        "stretch": None,
        "where": page_words(quotation.page, quotation.label),
        "num_pages": 0,
        "can_be_drawn": False,
        "text": quotation.text,
        "start": 0,
        "end": len(quotation.text),
        "notices": [NO_LONGER_THERE],
    }
