"""What is found, where, and when nothing is."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from sqlite_utils import Database as Tables

from app.documents.contents import forget_unused, make_index_if_old, put_document
from app.documents.document import Facts, Heading, Page
from app.documents.holding import LIBRARY
from app.documents.search import MOST_JOINED, MOST_OF_ONE_PAGE, Found, Hit, Search
from app.documents.text_index import MOST_ROWS
from app.history.database import Database

RIVER = "The river Inn rises in Switzerland and joins the Danube at Passau. "
FILLER = "Nothing of interest was said about gardens, weather, bread or the price of candles. "


def check_hits(hits: Sequence[Hit]) -> None:
    """Best first, and no passage in two of them."""
    assert all(one.score >= other.score for one, other in pairwise(hits))
    ids = [passage_id for hit in hits for passage_id in hit.passage_ids]
    assert len(ids) == len(set(ids))


class Shelf:
    """Documents that are put there as texts, and asked."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.search = Search()

    def put(self, path: str, *texts: str, headings: Sequence[Heading] = ()) -> int:
        pages = [
            Page(number=number, label=f"L{number}", text=text, headings=tuple(headings))
            for number, text in enumerate(texts, start=1)
        ]

        def put(tables: Tables) -> int:
            facts = Facts(kind="txt", num_pages=len(pages))
            document_id = put_document(tables, path, 1, facts, pages)
            tables.execute("insert or ignore into root(id, path, is_folder) values (1, '/', 1)")
            tables.execute(
                "insert or ignore into file(root_id, path, size, mtime_ns, document_id, state)"
                " values (1, ?, 0, 0, ?, 'indexed')",
                [path, document_id],
            )
            return document_id

        return self.database.run_sync(put)

    def remove(self, path: str) -> None:
        def remove(tables: Tables) -> None:
            (gone,) = tables.execute(
                "delete from file where path = ? returning document_id", [path]
            ).fetchall()
            forget_unused(tables, gone)

        self.database.run_sync(remove)

    def find(self, question: str, limit: int = 8) -> Found:
        found = self.database.run_sync(
            lambda tables: self.search.find(tables, question, "", [], limit)
        )
        check_hits(found.hits)
        return found

    def paths(self, question: str) -> list[str]:
        return [hit.paths[0] for hit in self.find(question).hits]


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with Database(None, LIBRARY) as database:
        database.run_sync(make_index_if_old)
        yield Shelf(database)


def test_a_hit_says_where_it_is(shelf: Shelf) -> None:
    text = "Geography\n" + RIVER
    shelf.put("/a.txt", FILLER, text, headings=[Heading(start=0, path=("Book", "Rivers"))])
    hit = shelf.find("Where does the Inn join the Danube?").hits[0]
    assert (hit.paths, hit.page, hit.label) == (("/a.txt",), 2, "L2")
    assert hit.heading == ("Book", "Rivers")
    assert text[hit.start : hit.end] == hit.text == text.strip()
    marked = [hit.snippet.text[start:end] for start, end in hit.snippet.marks]
    assert marked == ["Inn", "joins", "Danube"]
    assert hit.score > 0


@pytest.mark.parametrize(
    ("document", "question"),
    [
        ("He insured the houses against flooding.", "insurance of a flooded house"),
        ("Der Hochwasserschutz kostet viel.", "Hochwasser"),
        ("Die französischen Universitäten öffnen.", "französische Universität"),
        ("Las universidades francesas abren.", "universidad francesa"),
        ("黑豹队的防守只丢了308分。", "黑豹队丢了多少分"),
        ("彼は東京大学で学んだ。", "東京大学"),
        ("กรุงเทพมหานครเป็นเมืองหลวง", "เมืองหลวง"),
        ("Он жил в больших городах России.", "большой город"),
        ("درس في الجامعات الأمريكية", "الجامعة الأمريكية"),
        ("مُحَمَّد بنى بيتا", "محمد"),
        ("In the year ２０２４ it rained.", "2024"),
        ("Crème brûlée is served.", "creme brulee"),
        ("creme brulee is served", "Crème Brûlée"),
        ("中", "中"),
    ],
)
def test_every_language_is_found_in_its_own_forms(
    shelf: Shelf, document: str, question: str
) -> None:
    shelf.put("/other.txt", "Quite another matter, 完全不同的事情, совсем другое.")
    shelf.put("/this.txt", document)
    hit = shelf.find(question).hits[0]
    assert hit.paths == ("/this.txt",)
    assert hit.snippet.marks


@pytest.mark.parametrize(
    "question",
    ['"', "a AND", "NEAR(", "heading:", "*", "--", "' or 1=1", "\0", "", "?", "\ud800", "-x", "^y"],
)
def test_no_question_is_a_query_of_the_index(shelf: Shelf, question: str) -> None:
    shelf.put("/a.txt", RIVER)
    shelf.find(question)


def test_what_was_removed_is_not_found_any_more(shelf: Shelf) -> None:
    shelf.put("/a.txt", RIVER, FILLER)
    shelf.put("/b.txt", FILLER)
    shelf.remove("/a.txt")
    assert shelf.paths("Danube Passau") == []
    assert shelf.paths("candles") == ["/b.txt"]
    left = shelf.database.run_sync(
        lambda tables: [
            tables.execute(f"select count(*) from {table}").fetchone()[0]
            for table in ("document", "page", "passage", "passage_fts")
        ]
    )
    assert left == [1, 1, 1, 1]
    terms = shelf.database.run_sync(
        lambda tables: [term for (term,) in tables.execute("select term from passage_term")]
    )
    assert "candl" in terms and "danub" not in terms


def test_a_document_that_is_read_again_is_there_once(shelf: Shelf) -> None:
    first = shelf.put("/a.txt", RIVER)
    assert shelf.put("/a.txt", RIVER.replace("Danube", "Rhine")) == first
    assert shelf.paths("Danube") == []
    assert shelf.paths("Rhine") == ["/a.txt"]


def test_an_index_by_older_rules_is_made_anew(shelf: Shelf) -> None:
    shelf.put("/a.txt", RIVER)

    def spoil(tables: Tables) -> None:
        tables.execute("insert into passage_fts(passage_fts) values ('delete-all')")
        tables.execute("update index_fact set value = 0")

    shelf.database.run_sync(spoil)
    assert shelf.paths("Danube") == []
    shelf.database.run_sync(make_index_if_old)
    assert shelf.paths("Danube") == ["/a.txt"]


def test_neighbours_are_one_hit(shelf: Shelf) -> None:
    sentences = [f"The Inn flows past town number {number} in the valley." for number in range(30)]
    text = " ".join(sentences)
    shelf.put("/a.txt", text)
    hits = shelf.find("Inn valley town").hits
    assert 1 < max(len(hit.passage_ids) for hit in hits) <= MOST_JOINED
    for hit in hits:
        assert hit.text == text[hit.start : hit.end]
        assert list(hit.passage_ids) == sorted(hit.passage_ids)


def test_not_more_than_three_of_one_page(shelf: Shelf) -> None:
    part = "The Inn is a river of {0}.\n" + FILLER * 9
    headings = []
    text = ""
    for number in range(8):
        headings.append(Heading(start=len(text), path=(f"Part {number}",)))
        text += part.format(f"country{number}") + f"unlike{number} " * 40 + "\n\n"
    shelf.put("/a.txt", text, headings=headings)
    shelf.put("/b.txt", "The Inn is a river as well.")
    hits = shelf.find("the river Inn", limit=20).hits
    assert sum(hit.paths == ("/a.txt",) for hit in hits) == MOST_OF_ONE_PAGE
    assert ("/b.txt",) in [hit.paths for hit in hits]


def test_two_versions_of_one_text_are_one_hit(shelf: Shelf) -> None:
    long = " ".join(f"clause{number}" for number in range(80))
    shelf.put("/one.txt", f"The contract ends in May. {long}")
    shelf.put("/two.txt", f"The contract ends in May. {long} .")
    shelf.put("/three.txt", "Another contract ends in June.")
    assert len(shelf.paths("When does the contract end?")) == 2


def test_the_same_bytes_are_one_hit_with_all_their_paths(shelf: Shelf) -> None:
    document_id = shelf.put("/a.txt", RIVER)
    shelf.database.run_sync(
        lambda tables: tables.execute(
            "insert into file(root_id, path, size, mtime_ns, document_id, state)"
            " values (1, '/copy.txt', 0, 0, ?, 'indexed')",
            [document_id],
        )
    )
    (hit,) = shelf.find("Danube").hits
    assert hit.paths == ("/a.txt", "/copy.txt")


def test_what_the_library_has_is_enough_and_what_it_has_not_is_not(shelf: Shelf) -> None:
    for number in range(30):
        shelf.put(f"/{number}.txt", f"Chapter {number} is about subject{number}. " + FILLER)
    shelf.put("/inn.txt", RIVER)
    assert shelf.find("Where does the Inn join the Danube?").is_enough
    weak = shelf.find("Who painted the ceiling of the Sistine chapel, and at what price?")
    assert weak.hits and not weak.is_enough
    nothing = shelf.find("Zygomorphic quasars?")
    assert nothing.hits == () and not nothing.is_enough


def test_one_short_document_alone_can_be_enough(shelf: Shelf) -> None:
    shelf.put("/inn.txt", RIVER)
    assert shelf.find("Which large river does the Inn join at Passau?").is_enough
    assert not shelf.find("Which painters have lived and worked in Passau?").is_enough


def test_what_stands_under_a_heading_is_found_by_it(shelf: Shelf) -> None:
    heading = Heading(start=0, path=("Cancellation policy",))
    shelf.put("/a.txt", "Thirty days before the end of a month.", headings=[heading])
    shelf.put("/b.txt", "Thirty days of rain in a month.")
    assert shelf.paths("cancellation")[0] == "/a.txt"


def test_words_that_stand_everywhere_do_not_make_a_search_slow(shelf: Shelf) -> None:
    """Only what is weighed costs; the rarest word is always looked for."""
    shelf.put("/a.txt", RIVER)

    def crowd(tables: Tables) -> None:
        tables.conn.executemany(
            "insert into passage_fts(rowid, heading, body) values (?, '', 'river switzerland')",
            ((number,) for number in range(10, 10 + MOST_ROWS)),
        )

    shelf.database.run_sync(crowd)
    assert shelf.paths("Passau river Switzerland") == ["/a.txt"]
