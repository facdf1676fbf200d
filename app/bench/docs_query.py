"""What a question waits for in a large library: with the text index alone, and with a vector for
each passage, where the English embedding model is at hand."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

from app.bench.docs_files import Texts
from app.bench.docs_plain import LIBRARY_NAME, PAGE_END, plain_library
from app.documents.embedding.choice import ALL_LANGUAGES, ENGLISH, NONE, EmbedderChoice
from app.documents.embedding.embedder import Embedder
from app.documents.embedding.embeddings import Embedding
from app.documents.embedding.model_files import is_there, process_for
from app.documents.embedding.vectors import (
    look_at_languages,
    next_without,
    put_vectors,
    take_on,
)
from app.documents.holding import LIBRARY
from app.documents.library import Library
from app.history.database import Database

PASSAGE_WORDS = 100
"""New ones in each passage: it has about 120, and shares 20 with the one before."""
PAGES_A_FILE = 40
AT_ONCE = 1_000
# The words are nobody's, so whichever language they are taken for counts.
BY_MEANING = EmbedderChoice(ENGLISH, languages=(ALL_LANGUAGES,))


class Asked(NamedTuple):
    """Milliseconds of each question, by the clock and of the processor, over so many passages;
    `with_vectors_ms`, by the clock, is empty where there is no model for them."""

    num_passages: int
    wall_ms: list[float]
    processor_ms: list[float]
    with_vectors_ms: list[float]


@dataclass(slots=True)
class Chosen:
    """Nothing until there are vectors: none shall be made here of 100,000 texts."""

    choice: EmbedderChoice = EmbedderChoice(NONE)


async def asked(num_passages: int, num_questions: int) -> Asked:
    """Questions about texts that are in the library."""
    texts, chosen = Texts(), Chosen()
    with tempfile.TemporaryDirectory(prefix="inglenook-") as models:
        embedding = Embedding(Path(models), lambda: chosen.choice)
        async with plain_library(embedding) as (library, folder):
            page_words = 5 * PASSAGE_WORDS
            num_files = max(1, num_passages * PASSAGE_WORDS // (page_words * PAGES_A_FILE))
            samples = []
            for number in range(num_files):
                pages = [texts.page(page_words) for _ in range(PAGES_A_FILE)]
                (folder / f"{number}.txt").write_text(PAGE_END.join(pages))
                samples.append(pages[0])
            await library.add(folder)
            await library.settled()
            (num_found,) = await library.ask(
                lambda tables: tables.execute("select count(*) from passage").fetchone()
            )
            questions = [
                texts.question(samples[number % num_files], 2 + number % 5)
                for number in range(num_questions)
            ]
            wall_ms, processor_ms = await _find(library, questions)
            with_vectors_ms: list[float] = []
            if is_there(ENGLISH):
                process = process_for(BY_MEANING, Path(models))
                embedder = await process.embedder()
                await process.close()
                await put_random_vectors(folder.with_name(LIBRARY_NAME), embedder)
                chosen.choice = BY_MEANING
                with_vectors_ms, _ = await _find(library, questions)
            return Asked(num_found, wall_ms, processor_ms, with_vectors_ms)


async def _find(library: Library, questions: Sequence[str]) -> tuple[list[float], list[float]]:
    """Milliseconds by the clock, and of the processor."""
    # The first question pays for opening.
    await library.find("fire")
    found: tuple[list[float], list[float]] = ([], [])
    for question in questions:
        wall, processor = perf_counter(), process_time()
        await library.find(question)
        found[0].append(1e3 * (perf_counter() - wall))
        found[1].append(1e3 * (process_time() - processor))
    return found


async def put_random_vectors(library: Path, embedder: Embedder) -> None:
    """One for each passage: how near they are to a question takes as long as with real ones."""
    random = np.random.default_rng(0)
    store = Database(library, LIBRARY)
    try:
        embedder_id = await store.run(lambda tables: take_on(tables, embedder))
        while await store.run(lambda tables: look_at_languages(tables, AT_ONCE)):
            pass
        find = partial(next_without, embedder_id=embedder_id, languages=(), limit=AT_ONCE)
        after = 0
        while wanted := await store.run(partial(find, after=after)):
            vectors = random.standard_normal((len(wanted), embedder.width), np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            made = list(zip(wanted, vectors, strict=True))
            await store.run(partial(put_vectors, embedder_id=embedder_id, made=made))
            after = wanted[-1].passage_id
    finally:
        store.close()
