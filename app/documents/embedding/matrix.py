"""All vectors of an embedder in memory, as one matrix that is multiplied with a question's.

It follows its table: what was added is read, what was deleted is left out, at every search.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlite_utils import Database as Tables

from app.documents.embedding.vectors import num_deleted

ROWS_READ = 4_096
FEWEST_COMPARED = 8
FEWEST_ROWS = 1_024


class Near(NamedTuple):
    """`closeness` is the cosine between a passage and the question."""

    passage_id: int
    closeness: float


class Nearest(NamedTuple):
    """The nearest, best first. `standing`: by how many deviations the first one is nearer than the
    first of so many passages would be by chance; None where they are too few to tell."""

    near: list[Near]
    standing: float | None = None


class Matrix:
    """Owned by the thread of the tables that it is given."""

    def __init__(self) -> None:
        self._embedder_id: int | None = None
        self._forget()

    def _forget(self) -> None:
        self._size = 0
        self._last_id = 0
        self._num_deleted = 0
        self._vectors = np.zeros((0, 0), np.float32)
        self._vector_ids = np.zeros(0, np.int64)
        self._passage_ids = np.zeros(0, np.int64)

    @property
    def passage_ids(self) -> NDArray[np.int64]:
        return self._passage_ids[: self._size]

    @property
    def vectors(self) -> NDArray[np.float32]:
        return self._vectors[: self._size]

    def follow(self, tables: Tables, embedder_id: int) -> None:
        """Become equal to the table, within the transaction that goes on."""
        if embedder_id != self._embedder_id:
            self._forget()
            self._embedder_id = embedder_id
        gone = num_deleted(tables)
        if gone != self._num_deleted:
            if self._size:
                self._leave_out_gone(tables)
            self._num_deleted = gone
        self._read_new(tables)

    def nearest(
        self, question: NDArray[np.float32], limit: int, among: NDArray[np.int64] | None = None
    ) -> Nearest:
        """`among` are the passages that count; None: all do."""
        if not self._size or question.shape != (self._vectors.shape[1],):
            return Nearest([])
        closeness = self.vectors @ question
        standing = _standing(closeness)
        if among is not None:
            counts = np.isin(self.passage_ids, among)
            standing = _standing(closeness[counts])
            closeness[~counts] = -np.inf
        num = min(limit, self._size)
        best = np.argpartition(-closeness, num - 1)[:num]
        # Of equals the earlier passage goes first, whatever its place in memory.
        best = best[np.lexsort((self.passage_ids[best], -closeness[best]))]
        near = [
            Near(int(self.passage_ids[row]), float(closeness[row]))
            for row in best
            if np.isfinite(closeness[row])
        ]
        return Nearest(near, standing)

    def has(self, passage_ids: Sequence[int]) -> list[bool]:
        """Whether each has a vector."""
        return [bool(each) for each in np.isin(np.array(passage_ids, np.int64), self.passage_ids)]

    def _leave_out_gone(self, tables: Tables) -> None:
        rows = tables.execute("select id from vector where embedder_id = ?", [self._embedder_id])
        there = np.fromiter((each for (each,) in rows), np.int64)
        kept = np.isin(self._vector_ids[: self._size], there)
        num = int(kept.sum())
        if num < self._size:
            for array in (self._vectors, self._vector_ids, self._passage_ids):
                array[:num] = array[: self._size][kept]
            self._size = num

    def _read_new(self, tables: Tables) -> None:
        rows = tables.execute(
            "select id, passage_id, numbers from vector where embedder_id = ? and id > ?"
            " order by id",
            [self._embedder_id, self._last_id],
        )
        while found := rows.fetchmany(ROWS_READ):
            self._add(found)

    def _add(self, rows: Iterable[tuple[int, int, bytes]]) -> None:
        vector_ids, passage_ids, numbers = zip(*rows, strict=True)
        vectors = np.frombuffer(b"".join(numbers), "<f2").reshape(len(vector_ids), -1)
        end = self._size + len(vector_ids)
        if end > len(self._vector_ids):
            self._grow(max(end, self._size * 5 // 4, FEWEST_ROWS), vectors.shape[1])
        self._vectors[self._size : end] = vectors
        self._vector_ids[self._size : end] = vector_ids
        self._passage_ids[self._size : end] = passage_ids
        self._size, self._last_id = end, vector_ids[-1]

    def _grow(self, num_rows: int, width: int) -> None:
        vectors = np.zeros((num_rows, width), np.float32)
        if self._size:
            vectors[: self._size] = self.vectors
        vector_ids, passage_ids = np.zeros((2, num_rows), np.int64)
        vector_ids[: self._size] = self._vector_ids[: self._size]
        passage_ids[: self._size] = self.passage_ids
        self._vectors, self._vector_ids, self._passage_ids = vectors, vector_ids, passage_ids


def _standing(closeness: NDArray[np.float32]) -> float | None:
    num, spread = len(closeness), float(closeness.std()) if len(closeness) else 0.0
    if num < FEWEST_COMPARED or spread == 0.0:
        return None
    # The largest of `num` drawn from a bell curve is about there.
    by_chance = math.sqrt(2 * math.log(num))
    return float(closeness.max() - closeness.mean()) / spread - by_chance
