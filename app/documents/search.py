"""Where in the library a question is answered: the best passages as hits, or that there are none.

words --> BM25 ----> fused -> twins left out, neighbours joined, few of one page -> hits, snippets
vector -> nearest --^
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlite_utils import Database as Tables

from app.documents.cite import Checked, Citing
from app.documents.embedding.matrix import Matrix
from app.documents.fusion import Legs, Meant, fuse, nearest
from app.documents.quotation import Quotation
from app.documents.rows import path_from
from app.documents.snippet import Snippet, make_snippet
from app.documents.split import BETWEEN_HEADINGS, Passage, passage_text
from app.documents.text_index import Stems, Weighed, candidates, stems_of, weigh
from app.documents.weighing import telling
from app.documents.words import Script

NUM_CANDIDATES = 40
NUM_WEIGHED = 5
MOST_OF_ONE_PAGE = 3
MOST_JOINED = 3
"""Passages in one hit."""
TWINS = 0.95
"""Passages that share so much of their words say the same."""

# How much of a question's words one passage must have to be an answer, by `_share`: a long question
# is seldom found whole, so each of its words lowers that by a little. Refused on XQuAD with the
# article taken out of the library, and with it there: en .90 / .03, de .89 / .05, es .82 / .02,
# zh .90 / .04, ru .90 / .05, ar .89 / .04.
FLOORS = {
    Script.ENGLISH: 0.48,
    Script.LETTERS: 0.41,
    Script.CYRILLIC: 0.55,
    Script.ARABIC: 0.50,
    Script.DENSE: 0.30,
}
FLOOR_PER_WORD = 0.015
MOST_COUNTED_WORDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A stretch of a document from `start` in the text of `page` to `end` in that of `page_to`.

    `paths` are all files with these bytes. `passage_ids` are the passages that were joined, in
    their order. `score` is that of the best of them, larger is better: BM25's, or where meaning was
    searched too from 0 to 1, which is the first by words and by meaning. `sha256` is that of the
    bytes.
    """

    document_id: int
    passage_ids: tuple[int, ...]
    paths: tuple[str, ...]
    title: str
    page: int
    page_to: int
    label: str
    heading: tuple[str, ...]
    start: int
    end: int
    text: str
    score: float
    snippet: Snippet
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """`is_enough`: a hit has so much of the question that it may be answered from the hits.
    Where it is not, they are the nearest there is. `is_known`: a word of the question stands
    somewhere in the library."""

    hits: tuple[Hit, ...]
    is_enough: bool
    is_known: bool = True


@dataclass(slots=True)
class _Stretch:
    """A hit in the making."""

    document_id: int
    passage: Passage
    passage_ids: list[int]
    score: float
    stems: frozenset[str]
    texts: dict[int, str] = field(default_factory=dict)


class Search:
    """Owned by the thread of the tables that it is given."""

    def __init__(self) -> None:
        self._stems = Stems()
        self._matrix = Matrix()

    def find(
        self,
        tables: Tables,
        question: str,
        within: str,
        values: Sequence[str | int],
        limit: int,
        meant: Meant | None = None,
        legs: Legs = Legs.BOTH,
    ) -> Found:
        """`within` is a condition on `file` in SQL, or empty for the whole library. Without `meant`
        words alone are searched."""
        weighed = weigh(tables, self._stems, question)
        by_words = candidates(tables, weighed, within, values, NUM_CANDIDATES)
        # Looked at before neighbours are joined: a longer text has more of everything.
        best = [
            self._stretch(tables, each.passage_id, each.score) for each in by_words[:NUM_WEIGHED]
        ]
        is_enough = self._share(tables, weighed, best) >= _floor(weighed)
        ranked = [] if legs is Legs.MEANING else by_words
        if meant is not None:
            near = nearest(tables, self._matrix, meant, within, values, NUM_CANDIDATES)
            fused = fuse(tables, self._matrix, meant, ranked, near, are_words_enough=is_enough)
            ranked, is_enough = fused.ranked[:NUM_CANDIDATES], is_enough or fused.is_enough
        known = {stretch.passage_ids[0]: stretch for stretch in best}
        found = []
        for each in ranked:
            stretch = known.get(each.passage_id) or self._stretch(tables, each.passage_id, 0.0)
            stretch.score = each.score
            found.append(stretch)
        chosen = _chosen(found, limit)
        hits = tuple(self._hit(tables, stretch, weighed, within, values) for stretch in chosen)
        is_known = any(each.is_known for each in telling(weighed))
        return Found(hits, is_enough, is_known)

    def warm(self, tables: Tables, embedder_id: int) -> None:
        """Read the vectors before somebody asks."""
        self._matrix.follow(tables, embedder_id)

    def check(
        self, tables: Tables, content: str, question: str, quotations: Sequence[Quotation]
    ) -> Checked:
        """What of an answer stands in which of the passages that it was made from."""
        citing = Citing(
            question,
            quotations,
            lambda text: weigh(tables, self._stems, text),
            lambda text: stems_of(tables, self._stems, text),
        )
        return citing.check(content)

    def _stretch(self, tables: Tables, passage_id: int, score: float) -> _Stretch:
        document_id, page_from, page_to, start, end, heading = tables.execute(
            "select document_id, page_from, page_to, start, end, heading from passage where id = ?",
            [passage_id],
        ).fetchone()
        passage = Passage(
            page_from=page_from,
            page_to=page_to,
            start=start,
            end=end,
            heading=tuple(heading.split(BETWEEN_HEADINGS)) if heading else (),
        )
        texts = page_texts(tables, document_id, page_from, page_to)
        stems = stems_of(tables, self._stems, passage_text(passage, texts))
        return _Stretch(document_id, passage, [passage_id], score, stems, texts)

    def _share(self, tables: Tables, weighed: Sequence[Weighed], best: Sequence[_Stretch]) -> float:
        """How much of the weight of a question's words the best passage has; what only stands
        right before or after it counts half."""
        total = sum(each.weight for each in weighed)
        if not total:
            return 0.0
        shares = []
        for stretch in best:
            near = stretch.stems | self._neighbours(tables, stretch)
            has = sum(each.found_in(stretch.stems) + each.found_in(near) for each in weighed)
            shares.append(has / 2 / total)
        return max(shares, default=0.0)

    def _neighbours(self, tables: Tables, stretch: _Stretch) -> frozenset[str]:
        (passage_id,) = stretch.passage_ids
        near = tables.execute(
            "select id from passage where id in (?, ?) and document_id = ?",
            [passage_id - 1, passage_id + 1, stretch.document_id],
        ).fetchall()
        return frozenset[str]().union(*(self._stretch(tables, each, 0).stems for (each,) in near))

    def _hit(
        self,
        tables: Tables,
        stretch: _Stretch,
        weighed: Sequence[Weighed],
        within: str,
        values: Sequence[str | int],
    ) -> Hit:
        passage = stretch.passage
        text = passage_text(passage, stretch.texts)
        (title, label, sha256) = tables.execute(
            "select title, label, sha256 from document join page on page.document_id = document.id"
            " where document.id = ? and number = ?",
            [stretch.document_id, passage.page_from],
        ).fetchone()
        paths = tables.execute(
            f"select path from file where document_id = ? {within and f'and ({within})'}"
            " order by path",
            [stretch.document_id, *values],
        )
        return Hit(
            document_id=stretch.document_id,
            passage_ids=tuple(stretch.passage_ids),
            paths=tuple(path_from(path) for (path,) in paths),
            title=title,
            page=passage.page_from,
            page_to=passage.page_to,
            label=label,
            heading=passage.heading,
            start=passage.start,
            end=passage.end,
            text=text,
            score=stretch.score,
            snippet=make_snippet(text, weighed, lambda words: self._stems.of(tables, words)),
            sha256=sha256,
        )


def page_texts(tables: Tables, document_id: int, first: int, last: int) -> dict[int, str]:
    return dict(
        tables.execute(
            "select number, text from page where document_id = ? and number between ? and ?",
            [document_id, first, last],
        )
    )


def _floor(weighed: Sequence[Weighed]) -> float:
    """Of the scripts of a question's words, each as heavy as they are."""
    total = sum(each.weight for each in weighed)
    if not total:
        return 1.0
    floor = sum(FLOORS[each.term.script] * each.weight for each in weighed) / total
    return floor - FLOOR_PER_WORD * min(len(weighed), MOST_COUNTED_WORDS)


def _chosen(found: Sequence[_Stretch], limit: int) -> list[_Stretch]:
    """The best, each thing once: twins left out, neighbours joined, at most three of one page."""
    chosen: list[_Stretch] = []
    taken: dict[int, _Stretch] = {}
    num_of_page: dict[tuple[int, int], int] = {}
    for each in found:
        (passage_id,) = each.passage_ids
        beside = next(
            (
                taken[near]
                for near in (passage_id - 1, passage_id + 1)
                if near in taken and _can_join(taken[near], each)
            ),
            None,
        )
        if beside is not None:
            _join(beside, each)
            taken[passage_id] = beside
            continue
        page = (each.document_id, each.passage.page_from)
        if len(chosen) == limit or num_of_page.get(page, 0) == MOST_OF_ONE_PAGE:
            continue
        if any(_are_twins(each, other) for other in chosen):
            continue
        chosen.append(each)
        taken[passage_id] = each
        num_of_page[page] = num_of_page.get(page, 0) + 1
    return chosen


def _can_join(one: _Stretch, other: _Stretch) -> bool:
    """Beside each other on one page, under one heading, and not too much already."""
    return (
        one.document_id == other.document_id
        and one.passage.page_to == one.passage.page_from == other.passage.page_from
        and other.passage.page_to == other.passage.page_from
        and one.passage.heading == other.passage.heading
        and len(one.passage_ids) < MOST_JOINED
    )


def _join(one: _Stretch, other: _Stretch) -> None:
    one.passage_ids = sorted([*one.passage_ids, *other.passage_ids])
    one.stems |= other.stems
    one.passage = Passage(
        page_from=one.passage.page_from,
        page_to=one.passage.page_to,
        start=min(one.passage.start, other.passage.start),
        end=max(one.passage.end, other.passage.end),
        heading=one.passage.heading,
    )


def _are_twins(one: _Stretch, other: _Stretch) -> bool:
    together = len(one.stems | other.stems)
    return together > 0 and len(one.stems & other.stems) / together > TWINS
