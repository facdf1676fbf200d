"""What a question waits for in a large library, with the text index alone."""

from time import perf_counter, process_time
from typing import NamedTuple

from app.bench.docs_files import Texts
from app.bench.docs_plain import PAGE_END, plain_library

PASSAGE_WORDS = 100
"""New ones in each passage: it has about 120, and shares 20 with the one before."""
PAGES_A_FILE = 40


class Asked(NamedTuple):
    """Milliseconds of each question, by the clock and of the processor, over so many passages."""

    num_passages: int
    wall_ms: list[float]
    processor_ms: list[float]


async def asked(num_passages: int, num_questions: int) -> Asked:
    """Questions about texts that are in the library."""
    texts = Texts()
    async with plain_library() as (library, folder):
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
        found = Asked(num_found, [], [])
        # The first question pays for opening.
        await library.find("fire")
        for question in questions:
            wall, processor = perf_counter(), process_time()
            await library.find(question)
            found.wall_ms.append(1e3 * (perf_counter() - wall))
            found.processor_ms.append(1e3 * (process_time() - processor))
        return found
