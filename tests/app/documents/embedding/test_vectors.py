"""The vectors in their table, and the matrix in memory, which always equals it."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlite_utils import Database as Tables

from app.documents.contents import forget_unused, put_document
from app.documents.document import Facts, Page
from app.documents.embedding.embedder import Embedder, Prefixes
from app.documents.embedding.matrix import Matrix
from app.documents.embedding.vectors import (
    look_at_languages,
    next_without,
    progress,
    put_vectors,
    take_on,
    use_only,
    used,
)
from app.documents.holding import LIBRARY
from app.history.database import Database
from tests.fake_embedder import WIDTH, bag

ENGLISH = "The house is on the river and it was built by the town. "
GERMAN = "Das Haus steht an dem Fluss und wurde von der Stadt gebaut. "


def embedder(name: str = "one", *languages: str) -> Embedder:
    return Embedder(
        name=name,
        path=f"/models/{name}",
        sha256=name,
        width=WIDTH,
        pooling="mean",
        prefixes=Prefixes(),
        languages=languages,
    )


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "documents.sqlite3", LIBRARY) as opened:
        yield opened


def put(tables: Tables, name: str, text: str) -> int:
    document_id = put_document(
        tables, name, 1, Facts(kind="txt", num_pages=1), [Page(number=1, label="1", text=text)]
    )
    while look_at_languages(tables, 5):
        pass
    return document_id


def fill(tables: Tables, embedder_id: int, *languages: str) -> int:
    num = 0
    while wanted := next_without(tables, embedder_id, languages, 0, 3):
        put_vectors(tables, embedder_id, [(each, bag(each.text, {})) for each in wanted])
        num += len(wanted)
    return num


def as_stored(tables: Tables, embedder_id: int) -> dict[int, bytes]:
    return dict(
        tables.execute(
            "select passage_id, numbers from vector where embedder_id = ?", [embedder_id]
        ).fetchall()
    )


def as_held(matrix: Matrix) -> dict[int, bytes]:
    rows = matrix.vectors.astype("<f2")
    return {
        int(passage_id): row.tobytes()
        for passage_id, row in zip(matrix.passage_ids, rows, strict=True)
    }


def test_every_passage_gets_one_vector(database: Database) -> None:
    def work(tables: Tables) -> None:
        put(tables, "a", ENGLISH * 60)
        embedder_id = take_on(tables, embedder())
        before = progress(tables, embedder().key, ())
        assert before.num_without == before.num_passages > 3
        assert fill(tables, embedder_id) == before.num_passages
        assert progress(tables, embedder().key, ()).num_without == 0

    database.run_sync(work)


def test_a_document_in_a_language_that_is_not_known_gets_none(database: Database) -> None:
    def work(tables: Tables) -> None:
        put(tables, "a", ENGLISH * 20)
        german = put(tables, "b", GERMAN * 20)
        embedder_id = take_on(tables, embedder("one", "en"))
        fill(tables, embedder_id, "en")
        left = progress(tables, embedder("one", "en").key, ("en",))
        assert left.num_without == 0 and left.num_others > 0
        num = tables.execute(
            "select count(*) from vector join passage on passage.id = passage_id"
            " where document_id = ?",
            [german],
        ).fetchone()
        assert num == (0,)

    database.run_sync(work)


def test_a_document_that_goes_takes_its_vectors_along(database: Database) -> None:
    def work(tables: Tables) -> None:
        document_id = put(tables, "a", ENGLISH * 20)
        embedder_id = take_on(tables, embedder())
        matrix = Matrix()
        fill(tables, embedder_id)
        matrix.follow(tables, embedder_id)
        assert len(matrix.passage_ids)
        forget_unused(tables, [document_id])
        assert as_stored(tables, embedder_id) == {}
        matrix.follow(tables, embedder_id)
        assert len(matrix.passage_ids) == 0 and matrix.nearest(bag("river", {}), 5).near == []

    database.run_sync(work)


def test_a_vector_that_was_made_of_another_text_is_not_stored(database: Database) -> None:
    """The number of a passage that went is given to the next one."""

    def work(tables: Tables) -> None:
        document_id = put(tables, "a", ENGLISH * 20)
        embedder_id = take_on(tables, embedder())
        wanted = next_without(tables, embedder_id, (), 0, 50)
        forget_unused(tables, [document_id])
        put(tables, "b", GERMAN * 20)
        put_vectors(tables, embedder_id, [(each, bag(each.text, {})) for each in wanted])
        assert as_stored(tables, embedder_id) == {}

    database.run_sync(work)


def test_the_old_vectors_stay_until_the_new_ones_are_complete(database: Database) -> None:
    def work(tables: Tables) -> None:
        put(tables, "a", ENGLISH * 20)
        old = take_on(tables, embedder("old"))
        num = fill(tables, old)
        new = take_on(tables, embedder("new"))
        found = used(tables)
        assert found is not None and found.embedder.name == "old"
        assert len(as_stored(tables, old)) == num
        fill(tables, new)
        use_only(tables, new)
        found = used(tables)
        assert found is not None and found.embedder.name == "new"
        assert as_stored(tables, old) == {} and len(as_stored(tables, new)) == num

    database.run_sync(work)


def test_a_choice_that_was_given_up_leaves_nothing(database: Database) -> None:
    def work(tables: Tables) -> None:
        put(tables, "a", ENGLISH * 20)
        old = take_on(tables, embedder("old"))
        fill(tables, old)
        given_up = take_on(tables, embedder("given up"))
        fill(tables, given_up)
        again = take_on(tables, embedder("old"))
        assert again == old and as_stored(tables, given_up) == {}
        put_vectors(tables, given_up, [])
        assert as_stored(tables, given_up) == {}

    database.run_sync(work)


def test_the_matrix_equals_the_table_after_any_history(database: Database) -> None:
    drawn = random.Random(7)
    matrix = Matrix()
    documents: dict[str, int] = {}

    def step(tables: Tables) -> None:
        embedder_id = take_on(tables, embedder(drawn.choice(["one"] * 9 + ["two"])))
        match drawn.randrange(5):
            case 0 | 1:
                name = str(drawn.randrange(12))
                documents[name] = put(tables, name, ENGLISH * drawn.randrange(1, 25))
            case 2 if documents:
                forget_unused(tables, [documents.pop(drawn.choice(sorted(documents)))])
            case 3:
                fill(tables, embedder_id)
            case _:
                use_only(tables, embedder_id)
        found = used(tables)
        assert found is not None
        if drawn.random() < 0.7:
            matrix.follow(tables, found.embedder_id)
            assert as_held(matrix) == as_stored(tables, found.embedder_id)

    for _ in range(150):
        database.run_sync(step)


def test_the_nearest_come_first_and_only_of_those_that_count(database: Database) -> None:
    def work(tables: Tables) -> None:
        for number, word in enumerate(("bread", "war", "snow", "bread snow")):
            put(tables, str(number), word)
        embedder_id = take_on(tables, embedder())
        fill(tables, embedder_id)
        matrix = Matrix()
        matrix.follow(tables, embedder_id)
        near = matrix.nearest(bag("bread", {}), 3).near
        assert [each.passage_id for each in near][:2] == [1, 4]
        assert near[0].closeness == pytest.approx(1, abs=1e-3)
        among = matrix.nearest(bag("bread", {}), 3, np.array([2, 4])).near
        assert [each.passage_id for each in among] == [4, 2]
        assert matrix.has([4, 99, 1]) == [True, False, True]

    database.run_sync(work)


def test_what_stands_out_of_many_is_no_chance(database: Database) -> None:
    def work(tables: Tables) -> None:
        for number in range(40):
            put(tables, str(number), f"word{number} thing{number} other{number % 7}")
        embedder_id = take_on(tables, embedder())
        fill(tables, embedder_id)
        matrix = Matrix()
        matrix.follow(tables, embedder_id)
        clear = matrix.nearest(bag("word7 thing7", {}), 3).standing
        unclear = matrix.nearest(bag("other3 other4", {}), 3).standing
        assert clear is not None and unclear is not None and clear > 0 > unclear
        assert matrix.nearest(bag("word7", {}), 3, np.arange(5)).standing is None

    database.run_sync(work)
