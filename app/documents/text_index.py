"""Which passages hold the words of a question: BM25 over the text index of SQLite."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlite_utils import Database as Tables

from app.documents.migrations import TOKENIZER
from app.documents.words import IN_RUNS, Script, Term, fold, question_terms, tokens

HEADING_WEIGHT = 2.0
PIECES_BY_CHANCE = 0.34
FEWEST_PASSAGES = 100
"""In a smaller library a word would be common because there is nothing else."""
MOST_ROWS = 40_000
"""So many passages are weighed for one question. Where its words stand in more, the commonest of
them are left out of the search: they tell least, and weighing takes 1.5 µs a passage."""


class Stems:
    """Words as the index has them, asked of its own tokenizer. Owned by the thread of `tables`."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, tables: Tables, words: Iterable[str]) -> dict[str, str]:
        wanted = list(dict.fromkeys(words))
        unknown = [word for word in wanted if word not in self._known]
        if len(self._known) > 200_000:
            self._known, unknown = {}, wanted
        if unknown:
            self._ask(tables, unknown)
        return {word: self._known[word] for word in wanted}

    def _ask(self, tables: Tables, words: Sequence[str]) -> None:
        # What is kept in runs is as it is; of the others the tokenizer may change a letter.
        plain = [word for word in words if IN_RUNS.fullmatch(word) is None]
        self._known.update((word, word) for word in words)
        if not plain:
            return
        tables.execute(
            "create virtual table if not exists temp.asked using"
            f' fts5(word, tokenize="{TOKENIZER}")'
        )
        tables.execute(
            "create virtual table if not exists temp.answered using"
            " fts5vocab(temp, asked, instance)"
        )
        tables.conn.executemany(
            "insert into temp.asked(rowid, word) values (?, ?)", enumerate(plain)
        )
        for number, stem in tables.execute("select doc, term from temp.answered"):
            self._known[plain[number]] = stem
        tables.execute("delete from temp.asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A word of a question with its stems, each with its weight: the rarer, the heavier."""

    term: Term
    beginning: str
    weights: Mapping[str, float]
    num_rows: int
    num_there: int
    """Of its stems, those that stand in any passage."""

    def found_in(self, stems: frozenset[str]) -> float:
        """How much of its weight is there. Of an inflected word's pieces a third is found in
        almost any text, so that much counts nothing."""
        found = sum(weight for stem, weight in self.weights.items() if stem in stems)
        if self.term.script.is_in_threes and len(self.weights) > 1:
            by_chance = PIECES_BY_CHANCE * self.weight
            return max(0.0, found - by_chance) / (1 - PIECES_BY_CHANCE)
        if not found and self.beginning and f"\n{self.beginning}" in _lines(stems):
            return self.weight
        return found

    @property
    def is_known(self) -> bool:
        """The library has it. Some of its pieces stand in any text, by chance."""
        is_begun = self.num_rows > 0 and len(self.weights) == 1
        return is_begun or 2 * self.num_there > len(self.weights)

    @property
    def weight(self) -> float:
        return sum(self.weights.values())


@lru_cache(maxsize=4096)
def _lines(stems: frozenset[str]) -> str:
    """A line for each: a beginning is found in one go, where a loop takes a second for the check
    of an answer about a long document."""
    return "\n" + "\n".join(stems)


@dataclass(frozen=True, slots=True)
class Candidate:
    passage_id: int
    score: float


def weigh(tables: Tables, stems: Stems, question: str) -> list[Weighed]:
    """The words of a question, as the library knows them."""
    terms = question_terms(question)
    (num_passages,) = tables.execute("select count(*) from passage").fetchone()
    num_passages = max(num_passages, FEWEST_PASSAGES)
    beginnings = [term.beginning for term in terms if term.beginning]
    known = stems.of(tables, [*(token for term in terms for token in term.tokens), *beginnings])
    weighed = []
    for term in terms:
        beginning = known[term.beginning] if term.beginning else ""
        weights, num_rows, num_there = {}, 0, 0
        for token in term.tokens:
            num = _num_with(tables, known[token], is_beginning=_is_beginning(term, token))
            weights[known[token]] = math.log(1 + (num_passages - num + 0.5) / (num + 0.5))
            num_rows += num
            num_there += num > 0
        if beginning:
            num_rows = max(num_rows, _num_with(tables, beginning, is_beginning=True))
        weighed.append(
            Weighed(
                term=term,
                beginning=beginning,
                weights=weights,
                num_rows=num_rows,
                num_there=num_there,
            )
        )
    return weighed


def candidates(
    tables: Tables, weighed: Sequence[Weighed], within: str, values: Sequence[str | int], limit: int
) -> list[Candidate]:
    """The best passages, best first. `within` is a condition on `file` in SQL, or empty."""
    wanted = " or ".join(part for each in _rarest(weighed) for part in _match(each.term))
    if not wanted:
        return []
    condition = (
        "and rowid in (select passage.id from passage join file using (document_id)"
        f" where {within})"
        if within
        else ""
    )
    rows = tables.execute(
        f"select rowid, bm25(passage_fts, {HEADING_WEIGHT}, 1.0) as score from passage_fts"
        f" where passage_fts match ? {condition} order by score, rowid limit ?",
        [wanted.replace(" or ", " OR "), *values, limit],
    )
    return [Candidate(passage_id, -score) for passage_id, score in rows]


def stems_of(tables: Tables, stems: Stems, text: str) -> frozenset[str]:
    return frozenset(stems.of(tables, tokens(fold(text))).values())


def _rarest(weighed: Sequence[Weighed]) -> list[Weighed]:
    """As many words as may be weighed, and always the rarest that is there at all."""
    chosen: list[Weighed] = []
    num_rows = 0
    for each in sorted((each for each in weighed if each.num_rows), key=lambda one: one.num_rows):
        if chosen and num_rows + each.num_rows > MOST_ROWS:
            break
        chosen.append(each)
        num_rows += each.num_rows
    return chosen


def _match(term: Term) -> list[str]:
    """Nothing but letters and digits is in a token, so the quotes cannot be broken."""
    parts = [
        f'"{token}" *' if _is_beginning(term, token) else f'"{token}"' for token in term.tokens
    ]
    return [*parts, f'"{term.beginning}" *'] if term.beginning else parts


def _is_beginning(term: Term, token: str) -> bool:
    """One character of a script that is kept in pairs."""
    return term.script is Script.DENSE and len(token) == 1


def _num_with(tables: Tables, stem: str, *, is_beginning: bool) -> int:
    """In how many passages it stands; for a beginning the sum over its words."""
    if not is_beginning:
        found = tables.execute("select doc from passage_term where term = ?", [stem]).fetchone()
        return 0 if found is None else int(found[0])
    (num,) = tables.execute(
        "select coalesce(sum(doc), 0) from passage_term where term >= ? and term < ?",
        [stem, stem + "\U0010ffff"],
    ).fetchone()
    return int(num)
