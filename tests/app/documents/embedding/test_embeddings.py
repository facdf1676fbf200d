"""A library whose passages get vectors in the background, by a process without a model."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlite_utils import Database as Tables

from app.documents.embedding.choice import NONE, EmbedderChoice
from app.documents.embedding.embeddings import Embedding, EmbeddingStatus
from app.documents.library import Library
from engine.errors import ModelUnsupported
from tests.fake_embedder import COMMAND, ROOT, WIDTH, asked, write_fake_model
from tests.fakes_documents import FakeReader
from tests.waiting import until

FILLING = "It was built by the town in the year of the war, and it is on the river. "
BREAD = "The baker of the village has a recipe for sourdough. "


class Room:
    """A library, and what is chosen for it."""

    def __init__(self, room: Path) -> None:
        self.path = room / "documents.sqlite3"
        self.folder = room / "papers"
        self.model = write_fake_model(room / "one.json", same={"loaf": "sourdough"})
        self.choice = EmbedderChoice(str(self.model))
        self.is_busy = False
        self.patience_s = 120.0
        self.library = self.open()

    def open(self) -> Library:
        return Library(
            self.path,
            FakeReader(),
            embedding=Embedding(
                self.path.parent,
                lambda: self.choice,
                lambda: self.is_busy,
                COMMAND,
                self.patience_s,
            ),
        )

    async def add(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        await self.library.add(self.folder)
        await self.library.settled()
        return path

    async def filled(self) -> EmbeddingStatus:
        self.library.embeddings.background.wake()
        await self.library.embeddings.background.settled()
        return await self.library.embeddings.status()

    async def num_vectors(self) -> int:
        def ask(tables: Tables) -> int:
            return int(tables.execute("select count(*) from vector").fetchone()[0])

        return await self.library.ask(ask)

    async def found(self, question: str) -> list[str]:
        found = await self.library.find(question)
        return [Path(hit.paths[0]).name for hit in found.hits]


@pytest.fixture
async def place(room: Path, folder: Path) -> AsyncIterator[Room]:
    made = Room(room)
    await made.library.prepare()
    yield made
    await made.library.close()


async def test_what_no_word_finds_is_found_by_its_meaning(place: Room) -> None:
    await place.add("bread.txt", BREAD)
    await place.add("house.txt", FILLING)
    assert await place.found("Where is the loaf?") == []
    await place.filled()
    assert (await place.found("Where is the loaf?"))[0] == "bread.txt"


async def test_progress_says_how_many_have_none_yet(place: Room) -> None:
    await place.add("a.txt", FILLING * 60)
    place.is_busy = True
    place.library.embeddings.background.wake()
    await until(lambda: place.library.embeddings.is_waiting)
    status = await place.library.embeddings.status()
    assert status.is_working and status.progress.num_without == status.progress.num_passages > 3
    assert asked(place.model) == []
    place.is_busy = False
    status = await place.filled()
    assert status.progress.num_without == 0 and not status.is_working


async def test_a_file_that_comes_later_gets_its_vectors_by_itself(place: Room) -> None:
    await place.filled()
    await place.add("a.txt", FILLING * 3)
    await place.library.embeddings.background.settled()
    assert await place.num_vectors() > 0


async def test_a_deleted_file_has_no_vector(place: Room) -> None:
    await place.add("house.txt", FILLING)
    path = await place.add("bread.txt", BREAD)
    await place.filled()
    assert (await place.found("Where is the loaf?"))[0] == "bread.txt"
    path.unlink()
    await place.library.look()
    assert await place.num_vectors() == 1
    assert "bread.txt" not in await place.found("Where is the loaf?")


async def test_what_was_ended_in_the_middle_goes_on(place: Room) -> None:
    slow = write_fake_model(place.model.with_name("slow.json"), text_s=0.01)
    place.choice = EmbedderChoice(str(slow))
    await place.add("a.txt", FILLING * 300)
    place.library.embeddings.background.wake()
    await until(lambda: len(asked(slow)) > 18)
    await place.library.close()
    place.library = place.open()
    await place.library.prepare()
    num_kept = await place.num_vectors()
    assert num_kept > 0
    status = await place.filled()
    assert status.progress.num_without == 0
    assert await place.num_vectors() == status.progress.num_passages > num_kept
    # What had a vector was not computed again.
    num_texts = len(asked(slow))
    assert num_texts <= status.progress.num_passages + 16 + 1


async def test_a_process_that_dies_does_not_end_the_work(place: Room) -> None:
    await place.add("a.txt", FILLING + "DIE ONCE")
    await place.add("b.txt", FILLING + "DIE")
    await place.add("c.txt", BREAD)
    status = await place.filled()
    assert status.progress.num_without == 1
    assert (await place.found("Where is the loaf?"))[0] == "c.txt"


async def test_the_language_that_the_model_does_not_know_is_left_to_words(place: Room) -> None:
    german = "Das Haus steht an dem Fluss und ist in dem Jahr von der Stadt gebaut. "
    await place.add("german.txt", german + "sourdough")
    await place.add("bread.txt", BREAD)
    status = await place.filled()
    assert status.progress.num_others == 1 and await place.num_vectors() == 1
    num_texts = len(asked(place.model))
    await place.library.find("Wo ist das Haus und der Fluss?")
    assert len(asked(place.model)) == num_texts
    await place.library.find("Where is the house?")
    assert len(asked(place.model)) == num_texts + 1


async def test_a_question_is_answered_by_words_when_the_model_is_gone(place: Room) -> None:
    await place.add("bread.txt", BREAD)
    await place.filled()
    await place.library.close()
    place.model.unlink()
    place.library = place.open()
    await place.library.prepare()
    assert await place.found("Who has a recipe?") == ["bread.txt"]
    status = await place.filled()
    assert "no embedding model" in status.problem


async def test_a_question_whose_vector_does_not_come_is_searched_by_its_words(place: Room) -> None:
    await place.add("bread.txt", BREAD)
    await place.filled()
    await place.library.close()
    place.patience_s = 0.05
    place.library = place.open()
    await place.library.prepare()
    async with asyncio.timeout(60):
        assert await place.found("Who has the STUCK recipe?") == ["bread.txt"]
        # While it is stuck, the next one does not wait, and closing does not either.
        assert await place.found("Where is the recipe for the loaf?") == ["bread.txt"]
        await place.library.close()
    assert len(asked(place.model)) == 1


async def test_another_model_takes_over_when_all_its_vectors_are_there(place: Room) -> None:
    await place.add("bread.txt", BREAD)
    await place.add("house.txt", FILLING)
    await place.filled()
    other = write_fake_model(place.model.with_name("other.json"), same={"boulanger": "baker"})
    place.choice = EmbedderChoice(str(other))
    place.is_busy = True
    place.library.embeddings.background.wake()
    await until(lambda: place.library.embeddings.is_waiting)
    # The old vectors are asked, with the old model.
    assert (await place.found("Where is the loaf?"))[0] == "bread.txt"
    assert asked(other) == []
    place.is_busy = False
    status = await place.filled()
    assert status.searched is not None and status.searched.name == "other"
    assert (await place.found("Where is the boulanger?"))[0] == "bread.txt"
    assert await place.num_vectors() == 2


async def test_choosing_none_forgets_the_vectors(place: Room) -> None:
    await place.add("bread.txt", BREAD)
    await place.filled()
    place.choice = EmbedderChoice(NONE)
    status = await place.filled()
    assert await place.num_vectors() == 0 and status.searched is None
    assert await place.found("Who has a recipe?") == ["bread.txt"]


async def test_a_trial_says_what_it_would_cost_and_changes_nothing(place: Room) -> None:
    place.is_busy = True
    await place.add("a.txt", FILLING * 60)
    trial = await place.library.embeddings.try_out(place.choice)
    assert trial.num_passages > 3 and trial.seconds > 0
    assert await place.num_vectors() == 0
    place.is_busy = False
    await place.filled()
    assert (await place.library.embeddings.try_out(place.choice)).num_passages == 0


async def test_a_model_that_cannot_tell_texts_apart_is_refused(place: Room) -> None:
    deaf = write_fake_model(
        place.model.with_name("deaf.json"), same={"company": "doctor", "quarter": "night"}
    )
    with pytest.raises(ModelUnsupported, match="no closer than two that do not"):
        await place.library.embeddings.try_out(EmbedderChoice(str(deaf)))


async def test_closing_ends_the_processes(place: Room) -> None:
    slow = write_fake_model(place.model.with_name("slow.json"), text_s=30)
    place.choice = EmbedderChoice(str(slow))
    await place.add("a.txt", FILLING)
    place.library.embeddings.background.wake()
    await until(lambda: place.library.embeddings.is_waiting or slow.with_suffix(".asked"))
    async with asyncio.timeout(20):
        await place.library.close()


PROGRAM = """
import asyncio, sys
from pathlib import Path
from app.documents.embedding.choice import EmbedderChoice
from app.documents.embedding.embeddings import Embedding
from app.documents.library import Library
from tests.fake_embedder import COMMAND
from tests.fakes_documents import FakeReader

async def run():
    path = Path(sys.argv[1])
    choice = EmbedderChoice(sys.argv[2])
    library = Library(
        path, FakeReader(), embedding=Embedding(path.parent, lambda: choice, command=COMMAND)
    )
    await library.prepare()
    library.embeddings.background.wake()
    await library.embeddings.background.settled()

asyncio.run(run())
"""


async def test_what_was_killed_in_the_middle_goes_on(place: Room) -> None:
    slow = write_fake_model(place.model.with_name("slow.json"), text_s=0.01)
    place.is_busy = True
    await place.add("a.txt", FILLING * 300)
    await place.library.close()
    place.choice = EmbedderChoice(str(slow))
    for num_before in (20, 45):
        command = [sys.executable, "-c", PROGRAM, str(place.path), str(slow)]
        with subprocess.Popen(command, cwd=ROOT) as program:
            await until(lambda num=num_before: len(asked(slow)) >= num)  # type: ignore[misc]
            program.kill()
    place.is_busy = False
    place.library = place.open()
    await place.library.prepare()
    num_kept = await place.num_vectors()
    assert num_kept >= 16
    status = await place.filled()
    assert await place.num_vectors() == status.progress.num_passages > num_kept
    assert await place.library.ask(whole_vectors)


def whole_vectors(tables: Tables) -> bool:
    rows = tables.execute("select distinct length(numbers) from vector").fetchall()
    return bool(rows == [(2 * WIDTH,)])
