"""What a second question about a document waits for that was read from its beginning to its end.

For each pair a document of its own, and one home in which everything is as in the app:

    first question -----> all of it is read
    second question ----> in the same conversation
    another chat -------> the first question of another conversation about the same document
    after a restart ----> the model is loaded anew; the next question of the first conversation

Times are from sending the question to the first text of its answer. At last five conversations
are opened on one document, and the KV that is stored is compared with that of one.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from app.bench.chat_texts import question, sentences
from app.bench.compare import Bar, Figure, figure_of
from app.bench.machine import machine
from app.bench.options import add_context, add_effort, add_model
from app.bench.our_engine import model_of
from app.bench.report import Report
from app.documents.scope import Scope
from app.paths import Paths
from app.services import Services
from app.settings import Settings, save_settings
from engine.errors import EngineError

COLUMNS = ("question", "seconds", "of_the_first", "low", "high", "pairs", "read", "bar", "is_met")
SAME_BAR = Bar(at_most=0.01)
RESTART_BAR = Bar(at_most=0.03)
ONCE_BAR = Bar(at_most=1.1)
BARS = {"second": SAME_BAR, "another chat": SAME_BAR, "after a restart": RESTART_BAR}
NUM_CHATS = 5
SENTENCES_A_PAGE = 12
ANSWER = {"temperature": 0.0, "max_tokens": 8}
LOOK_S = 0.001
REST_S = 0.5
MOST_WAITED_S = 600.0


@dataclass(frozen=True, slots=True)
class Waited:
    """Until the first text of an answer, and how many tokens of the prompt were computed."""

    seconds: float
    num_read: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--tokens", type=int, default=6_000, metavar="N", help="of a document")
    add_context(parser)
    add_effort(parser, pairs=20, minutes=20.0)


def run(options: argparse.Namespace) -> Report:
    model = model_of(options.model)
    facts = machine(model=model.stem, context=options.context, tokens=options.tokens)
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(measured(options, model, Path(folder)))
    return Report("whole", facts, rows, COLUMNS)


async def measured(options: argparse.Namespace, model: Path, folder: Path) -> list[dict[str, Any]]:
    paths = Paths.from_environment({"INGLENOOK_HOME": str(folder / "home")})
    paths.create()
    chosen = Settings(
        context_tokens=options.context, default_sampling=ANSWER, automatic_titles=False
    )
    save_settings(paths.settings, chosen)
    ends = perf_counter() + 60 * options.minutes
    found: list[dict[str, Waited]] = []
    while len(found) < options.pairs or (not _is_settled(found) and perf_counter() < ends):
        found.append(await pair(paths, model, folder, len(found), options.tokens))
        waits = ", ".join(f"{name} {each.seconds:.3g} s" for name, each in found[-1].items())
        print(f"pair {len(found)}: {waits}", file=sys.stderr, flush=True)
        if perf_counter() >= ends:
            break
    rows = [_row(name, found) for name in found[0]]
    return [*rows, await stored_once(paths, model, folder, options.tokens)]


async def pair(
    paths: Paths, model: Path, folder: Path, number: int, num_tokens: int
) -> dict[str, Waited]:
    """One document, asked four times."""
    waits: dict[str, Waited] = {}
    async with app(paths, model) as services:
        file = await document(services, folder / f"{number}.txt", number, num_tokens)
        one, other = await chat(services, file), await chat(services, file)
        waits["first"] = await ask(services, one, question(3 * number))
        waits["second"] = await ask(services, one, question(3 * number + 1))
        waits["another chat"] = await ask(services, other, question(3 * number + 2))
    async with app(paths, model) as services:
        waits["after a restart"] = await ask(services, one, question(3 * number + 3))
        await services.documents.remove(file)
    return waits


async def stored_once(paths: Paths, model: Path, folder: Path, num_tokens: int) -> dict[str, Any]:
    """How much more KV five conversations about a document leave than one."""
    async with app(paths, model) as services:
        file = await document(services, folder / "shared.txt", -1, num_tokens)
        await services.model.forget_kv()
        sizes = []
        for number in range(NUM_CHATS):
            await ask(services, await chat(services, file), question(number))
            await asyncio.sleep(REST_S)
            sizes.append((await services.chat_model()).loaded.engine.kv_usage.ram_bytes)
    times = sizes[-1] / sizes[0]
    return {
        "question": f"KV of {NUM_CHATS} chats beside that of one",
        "of_the_first": times,
        "bar": str(ONCE_BAR),
        "is_met": ONCE_BAR.is_met_by(times),
    }


@asynccontextmanager
async def app(paths: Paths, model: Path) -> AsyncIterator[Services]:
    """As the app is, with its model loaded and the disk at hand."""
    services = Services(paths, str(model))
    services.start()
    try:
        engine = (await services.chat_model()).loaded.engine
        waited = perf_counter()
        while not engine.kv_usage.disk_budget and perf_counter() - waited < MOST_WAITED_S:
            await asyncio.sleep(0.05)
        yield services
    finally:
        await services.close()


async def document(services: Services, file: Path, number: int, num_tokens: int) -> Path:
    """A file in the library that has about so many tokens, with what stands around its parts."""
    model = await services.chat_model()
    words, pages, size = sentences(number), [""], 0
    for count, each in enumerate(words, start=1):
        size += len(model.loaded.tokenizer.encode(f" {each}"))
        # The lines between its parts take a twentieth.
        if size > 0.95 * num_tokens:
            break
        pages[-1] += f"{each} "
        if count % SENTENCES_A_PAGE == 0:
            pages.append("")
    file.write_text("\f".join(pages), encoding="utf-8")
    await services.documents.add(file)
    await services.documents.settled()
    return file


async def chat(services: Services, file: Path) -> str:
    scope = Scope(paths=(str(file),), as_whole=True)
    return (await services.conversations.create(documents=scope)).conversation_id


async def ask(services: Services, conversation_id: str, text: str) -> Waited:
    began = perf_counter()
    job = await services.jobs.send(conversation_id, text)
    while not (job.answer.message.content or job.answer.message.finish_reason):
        await asyncio.sleep(LOOK_S)
    seconds = perf_counter() - began
    answer = (await job.finished()).message
    if answer.grounds is None or answer.grounds.whole is None:
        raise EngineError(f"The document was not read whole: {answer.notice}")
    await services.jobs.at_rest(conversation_id)
    return Waited(seconds, int(answer.timings.get("prefilled_tokens", 0)))


def _ratios(name: str, found: list[dict[str, Waited]]) -> Figure:
    return figure_of([each[name].seconds / each["first"].seconds for each in found])


def _is_settled(found: list[dict[str, Waited]]) -> bool:
    return all(_ratios(name, found).is_narrow for name in BARS)


def _row(name: str, found: list[dict[str, Waited]]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "question": name,
        "seconds": figure_of([each[name].seconds for each in found]).median,
        "read": round(figure_of([each[name].num_read for each in found]).median),
        "pairs": len(found),
    }
    if name not in BARS:
        return row
    ratio, bar = _ratios(name, found), BARS[name]
    figures = {"of_the_first": ratio.median, "low": ratio.low, "high": ratio.high}
    return {**row, **figures, "bar": str(bar), "is_met": bar.is_met(ratio)}
