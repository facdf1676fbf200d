"""Documents: how fast they are read, what memory that takes, how long a large folder and a large
library keep one waiting, and whether a chat stays smooth meanwhile.

PDF files are made by the benchmark, as dense as a report, or they are those of `--data`.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from app.bench.compare import Bar, figure_of
from app.bench.docs_chat import chats
from app.bench.docs_files import PAGE_WORDS, Texts, write_pdf
from app.bench.docs_folder import rescans
from app.bench.docs_query import asked
from app.bench.docs_reading import grown_by, new_library, read
from app.bench.machine import Others, machine
from app.bench.options import add_context, add_effort, add_model
from app.bench.our_engine import OurEngine, model_of
from app.bench.report import Report
from engine.config import EngineConfig
from engine.errors import UsageError

COLUMNS = (
    *("measure", "of", "value", "low", "high", "p95", "processor_p95", "with_vectors_p95"),
    *("times", "bar", "passed"),
)
PAGES_BAR = Bar(at_least=150)
GROWTH_BAR_MB = Bar(at_most=300)
RESCAN_BAR_S = Bar(at_most=5)
QUERY_BAR_MS = Bar(at_most=150)
VECTORS_BAR_MS = Bar(at_most=250)
CHAT_BAR = Bar(at_most=1.8)
"""How much longer a token takes: no more than beside any program that keeps half of the cores busy,
where `decode --busy` asks for 0.55 of the speed."""
PAGES_A_FILE = 40
COUNTS = (
    ("pages", 2_000, 1, "made to be read"),
    ("long", 5_000, 1, "pages of a long file"),
    ("files", 10_000, 1, "looked at again"),
    ("passages", 100_000, 1, "in the library that is asked"),
    ("questions", 200, 1, "asked of it"),
    ("tokens", 96, 2, "of a chat's answer"),
    ("times", 5, 1, "of what takes seconds"),
)
"""Options that are a number: name, default, least, and what for."""

Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_context(parser)
    names = ", ".join(MEASURES)
    parser.add_argument("--only", default="", metavar="NAMES", help=f"some of {names}")
    parser.add_argument("--data", default="", metavar="DIR", help="PDF files (else made)")
    for name, default, least, what in COUNTS:
        parser.add_argument(
            f"--{name}", type=at_least(least), default=default, metavar="N", help=what
        )
    add_effort(parser, pairs=20, minutes=8.0, each="chat")


def at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        found = int(text)
        if found < least:
            raise argparse.ArgumentTypeError(f"at least {least}, not {found}")
        return found

    return number


def run(options: argparse.Namespace) -> Report:
    chosen = wanted(options.only)
    if options.data and not Path(options.data).is_dir():
        raise UsageError(f"There is no folder {options.data}.")
    facts = machine(model=model_of(options.model).stem, words_a_page=PAGE_WORDS)
    rows: list[Row] = []
    with Others() as others:
        for name in chosen:
            print(f"{name} …", file=sys.stderr, flush=True)
            rows += MEASURES[name](options)
    notes = [
        "Pages a second are of the processor time of the app and the reading process together,",
        "with splitting and indexing. The memory is that of a process of its own, at the most.",
        f"Others kept {others.cores:.2f} cores busy meanwhile.",
    ]
    return Report("docs", facts, rows, COLUMNS, notes=notes)


def wanted(only: str) -> list[str]:
    names = [name.strip() for name in only.split(",") if name.strip()]
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        raise UsageError(
            f"There is no measure {', '.join(unknown)}: choose of {', '.join(MEASURES)}."
        )
    return [name for name in MEASURES if not names or name in names]


def memory(options: argparse.Namespace) -> list[Row]:
    with _folder() as folder:
        path = folder / "long.pdf"
        texts = Texts()
        write_pdf(path, [texts.page() for _ in range(options.long)])
        del texts
        grown = grown_by(path)
    size = f"{options.long:,} pages"
    app_mb, reader_mb = grown.app / 1e6, grown.reader / 1e6
    return [
        _row("the app grows, MB", size, [app_mb]) | _verdict(GROWTH_BAR_MB, app_mb),
        _row("the reading process grows, MB", size, [reader_mb]),
    ]


def pages(options: argparse.Namespace) -> list[Row]:
    async def measured(folder: Path) -> list[Row]:
        async with new_library() as library:
            found = [await read(library, folder) for _ in range(options.times)]
        rates = [each.pages_per_s for each in found]
        size = f"{found[0].num_pages:,} pages, {found[0].num_passages:,} passages"
        shares = {
            "app_ms": median(1e3 * each.app_s / each.num_pages for each in found),
            "reader_ms": median(1e3 * each.reader_s / each.num_pages for each in found),
        }
        return [
            _row("PDF pages a second", size, rates) | _verdict(PAGES_BAR, median(rates)) | shares
        ]

    with _documents(options, options.pages) as folder:
        return asyncio.run(measured(folder))


def rescan(options: argparse.Namespace) -> list[Row]:
    found = asyncio.run(rescans(options.files, options.times))
    size = f"{options.files:,} files"
    rows = (("looked at again, s", found.unchanged), ("one in a hundred changed, s", found.changed))
    return [
        _row(name, size, values) | _verdict(RESCAN_BAR_S, median(values)) for name, values in rows
    ]


def query(options: argparse.Namespace) -> list[Row]:
    found = asyncio.run(asked(options.passages, options.questions))
    p95 = float(np.percentile(found.wall_ms, 95))
    meant = found.with_vectors_ms
    with_vectors = float(np.percentile(meant, 95)) if meant else None
    is_met = None if with_vectors is None else VECTORS_BAR_MS.is_met_by(with_vectors)
    return [
        _row("a question, ms", f"{found.num_passages:,} passages", found.wall_ms)
        | {
            "p95": p95,
            "processor_p95": float(np.percentile(found.processor_ms, 95)),
            "with_vectors_p95": with_vectors,
            "with_vectors_bar": str(VECTORS_BAR_MS),
            "with_vectors_passed": is_met,
        }
        | _verdict(QUERY_BAR_MS, p95)
    ]


def chat(options: argparse.Namespace) -> list[Row]:
    config = EngineConfig(model_path=model_of(options.model), context_tokens=options.context)
    with _documents(options, options.pages) as folder, OurEngine(config) as engine:
        found = chats(
            engine, folder, options.tokens, min_pairs=options.pairs, minutes=options.minutes
        )
    rows = []
    for name, sides in (
        ("while files are read", [pair.ours for pair in found.pairs]),
        ("alone", [pair.theirs for pair in found.pairs]),
    ):
        each = [ms for side in sides for ms in side.ms]
        rows.append(
            _row("between tokens, ms", name, each)
            | {"p95": float(np.percentile(each, 95)), "most": max(each)}
            | {"pages_read": sum(side.pages_read for side in sides)}
        )
    ratio, at_p95 = found.ratios["median"], found.ratios["p95"]
    rows.append(
        {
            "measure": "between tokens, ratio",
            "of": "pairs",
            "value": ratio.median,
            "low": ratio.low,
            "high": ratio.high,
            "p95": at_p95.median,
            "p95_interval": [at_p95.low, at_p95.high],
            "times": ratio.num,
            "bar": str(CHAT_BAR),
            "passed": CHAT_BAR.is_met(ratio),
        }
    )
    return rows


MEASURES: Mapping[str, Callable[[argparse.Namespace], list[Row]]] = {
    # Some of these leave the process larger; the memory is measured in another one.
    "memory": memory,
    "pages": pages,
    "rescan": rescan,
    "query": query,
    "chat": chat,
}


def _row(measure: str, of: str, values: Sequence[float]) -> Row:
    figure = figure_of(values)
    return {
        "measure": measure,
        "of": of,
        "value": figure.median,
        "low": figure.low,
        "high": figure.high,
        "times": figure.num,
    }


def _verdict(bar: Bar, value: float) -> Row:
    return {"bar": str(bar), "passed": bar.is_met_by(value)}


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="inglenook-") as name:
        yield Path(name).resolve()


@contextmanager
def _documents(options: argparse.Namespace, num_pages: int) -> Iterator[Path]:
    """A folder with the user's PDF files, or with some that are made."""
    if options.data:
        yield Path(options.data).resolve()
        return
    texts = Texts()
    with _folder() as folder:
        for first in range(0, num_pages, PAGES_A_FILE):
            num = min(PAGES_A_FILE, num_pages - first)
            write_pdf(folder / f"{first}.pdf", [texts.page() for _ in range(num)])
        yield folder
