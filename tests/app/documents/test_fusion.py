"""What two searches found, in one order."""

import numpy as np
from sqlite_utils import Database as Tables

from app.documents.contents import put_document
from app.documents.document import Facts, Page
from app.documents.embedding.embedder import Embedder, Prefixes
from app.documents.embedding.matrix import Matrix, Near, Nearest
from app.documents.embedding.vectors import Wanted, put_vectors, take_on, text_of
from app.documents.fusion import Meant, fuse
from app.documents.holding import LIBRARY
from app.documents.text_index import Candidate
from app.history.database import Database
from tests.fake_embedder import WIDTH, bag

EMBEDDER = Embedder(
    name="a", path="a", sha256="a", width=WIDTH, pooling="mean", prefixes=Prefixes()
)


def order(
    words: list[int],
    near: list[int],
    without: tuple[int, ...] = (),
    german: tuple[int, ...] = (),
    asked: tuple[str, ...] = ("en",),
    *,
    are_words_enough: bool = True,
) -> list[int]:
    """What comes of passages 1 to 6, some of them in German or without a vector."""

    def work(tables: Tables) -> list[int]:
        embedder_id = take_on(tables, EMBEDDER)
        for number in range(1, 7):
            page = Page(number=1, label="1", text=f"text {number}")
            put_document(tables, str(number), 1, Facts(kind="txt", num_pages=1), [page])
            wanted = Wanted(number, text_of(tables, number) or "")
            if number not in without:
                put_vectors(tables, embedder_id, [(wanted, bag(wanted.text, {}))])
            language = "de" if number in german else "en"
            tables.execute("update document set language = ? where id = ?", [language, number])
        matrix = Matrix()
        matrix.follow(tables, embedder_id)
        found = fuse(
            tables,
            matrix,
            Meant(embedder_id, np.zeros(WIDTH, np.float32), asked),
            [Candidate(each, 10.0 - each) for each in words],
            Nearest([Near(each, 0.9) for each in near], 1.0),
            are_words_enough=are_words_enough,
        )
        assert all(0 < each.score <= 1 for each in found.ranked)
        return [each.passage_id for each in found.ranked]

    with Database(None, LIBRARY) as database:
        return database.run_sync(work)


def test_what_both_found_comes_before_what_one_found() -> None:
    assert order([1, 2, 3], [4, 3, 5])[0] == 3


def test_both_orders_count_alike() -> None:
    assert order([1, 2], [2, 1]) == [1, 2]
    assert order([1, 2, 3], []) == [1, 2, 3]
    assert order([], [3, 1]) == [3, 1]


def test_a_passage_without_a_vector_is_neither_better_nor_worse_off() -> None:
    # First by its words, where the others are second and third by both.
    assert order([1, 2, 3], [2, 3], without=(1,)) == [1, 2, 3]
    assert order([2, 1, 3], [2, 3], without=(1,)) == [2, 1, 3]
    # With a vector that is not near it falls behind.
    assert order([1, 2, 3], [2, 3])[0] == 2


def test_across_languages_meaning_counts_more() -> None:
    every = (1, 2, 3, 4, 5, 6)
    assert order([1, 2, 3], [4, 5, 6], german=every) == [4, 5, 6, 1, 2, 3]
    assert order([1, 2, 3], [4, 5, 6])[:2] == [1, 4]
    assert order([1, 2, 3], [4, 5, 6], german=every, asked=())[:2] == [1, 4]


def test_words_that_are_not_enough_count_less() -> None:
    assert order([1, 2, 3], [4, 5, 6], are_words_enough=False) == [4, 5, 6, 1, 2, 3]
    # Where nothing has a vector their order stays.
    every = (1, 2, 3)
    assert order([3, 1, 2], [], without=every, are_words_enough=False) == [3, 1, 2]
