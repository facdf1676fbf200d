"""How much the words of a question tell, as the index knows them."""

from collections.abc import Iterator

import pytest

from app.documents.contents import make_index_if_old, put_document
from app.documents.document import Facts, Page
from app.documents.holding import LIBRARY
from app.documents.text_index import Stems, Weighed, stems_of, weigh
from app.history.database import Database

TEXTS = ["Rivers flow.", "A river flows slowly.", "Häuser stehen am Fluss.", "Большие города"]


@pytest.fixture
def database() -> Iterator[Database]:
    with Database(None, LIBRARY) as database:
        database.run_sync(make_index_if_old)
        for number, text in enumerate(TEXTS):
            pages = [Page(number=1, label="1", text=text)]
            facts = Facts(kind="txt", num_pages=1)
            database.run_sync(
                lambda tables, number=number, facts=facts, pages=pages: put_document(  # type: ignore[misc]
                    tables, str(number), 1, facts, pages
                )
            )
        yield database


def weighed(database: Database, question: str) -> dict[str, Weighed]:
    found = database.run_sync(lambda tables: weigh(tables, Stems(), question))
    return {each.term.word: each for each in found}


def test_stems_are_those_of_the_index(database: Database) -> None:
    words = ["rivers", "river", "flowing", "hauser", "города", "中国", "2024", "it"]
    stems = Stems()
    for _ in range(2):
        found = database.run_sync(lambda tables: stems.of(tables, words))
        assert list(found.values()) == [
            "river",
            "river",
            "flow",
            "hauser",
            "города",
            "中国",
            "2024",
            "it",
        ]


def test_the_rarer_a_word_the_more_it_tells(database: Database) -> None:
    words = weighed(database, "Which is the slowly flowing river of zeugma?")
    assert words["zeugma"].weight > words["slowly"].weight > words["river"].weight
    assert (words["river"].num_rows, words["zeugma"].num_rows) == (2, 0)


def test_a_word_is_there_in_its_forms(database: Database) -> None:
    def has(question: str, text: str) -> float:
        stems = Stems()
        (word,) = database.run_sync(lambda tables: weigh(tables, stems, question))
        found = database.run_sync(lambda tables: stems_of(tables, stems, text))
        return word.found_in(found) / word.weight

    assert has("the rivers", "One river.") == 1
    assert has("Hochwasser", "Hochwasserschutz") == 1
    assert has("the insur", "insurance") == 1
    assert has("the hochwasser", "Hochwasserschutz") == 0
    assert has("gizmos", "gizmo1") == has("b2bmarkt", "b2bmarktes") == has("gizmo1", "gizmo1") == 1
    assert has("gizmo1", "gizmo2 gizmo10") == has("gizmo1b", "gizmo12") == 0
    assert 0.3 < has("городами", "города") < 1
    assert has("городами", "дороги") == 0
