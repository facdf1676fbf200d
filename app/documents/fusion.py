"""What two searches found, by words and by meaning, in one order: reciprocal rank fusion.

A passage without a vector (it was just added, or is in a language that the embedder does not know)
counts as if its meaning said the same as its words, so it is neither better nor worse off.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlite_utils import Database as Tables

from app.documents.embedding.matrix import Matrix, Nearest
from app.documents.text_index import Candidate

K = 10
"""The larger, the less a first place counts."""
WEAK_WORDS = 0.25
"""What a place by words counts where question and document are in different languages, as what they
share are names and figures, and where no passage has enough of the question's words."""


class Legs(StrEnum):
    """By what is searched."""

    WORDS = "words"
    MEANING = "meaning"
    """Where the embedder knows the language of the question, or else nothing is found."""
    BOTH = "both"
    """By words alone where meaning cannot be."""


STANDS_OUT = -0.1
"""A passage in another language is an answer where it stands out so far, by `Nearest.standing`. On
XQuAD in English with questions it does not answer .80 were refused, of those it answers in German
.03, Spanish .03, Russian .11 and Chinese .25."""


class Meant(NamedTuple):
    """A question's vector, by the embedder whose vectors are searched. `languages` are those in
    which it may be."""

    embedder_id: int
    vector: NDArray[np.float32]
    languages: tuple[str, ...]


class Fused(NamedTuple):
    """`is_enough`: by meaning something was found in another language, where words cannot tell."""

    ranked: list[Candidate]
    is_enough: bool


def nearest(
    tables: Tables,
    matrix: Matrix,
    meant: Meant,
    within: str,
    values: Sequence[str | int],
    limit: int,
) -> Nearest:
    """By meaning, of the files that the condition lets through."""
    matrix.follow(tables, meant.embedder_id)
    among = None
    if within:
        rows = tables.execute(
            "select passage.id from passage where document_id in"
            f" (select document_id from file where {within})",
            values,
        )
        among = np.fromiter((each for (each,) in rows), np.int64)
    return matrix.nearest(meant.vector, limit, among)


def fuse(
    tables: Tables,
    matrix: Matrix,
    meant: Meant,
    by_words: Sequence[Candidate],
    nearest: Nearest,
    *,
    are_words_enough: bool,
) -> Fused:
    near = nearest.near
    ids = [each.passage_id for each in by_words]
    languages = _languages(tables, {*ids, *(each.passage_id for each in near)})
    scores: dict[int, float] = {}
    for rank, (passage_id, has_vector) in enumerate(zip(ids, matrix.has(ids), strict=True), 1):
        is_weak = not are_words_enough or _is_across(meant, languages[passage_id])
        weight = WEAK_WORDS if is_weak else 1.0
        scores[passage_id] = (weight if has_vector else weight + 1) / (K + rank)
    for rank, each in enumerate(near, 1):
        scores[each.passage_id] = scores.get(each.passage_id, 0.0) + 1 / (K + rank)
    best = (K + 1) / 2
    ranked = sorted(scores, key=lambda passage_id: (-scores[passage_id], passage_id))
    is_enough = (
        bool(near)
        and _is_across(meant, languages[near[0].passage_id])
        and (nearest.standing is None or nearest.standing > STANDS_OUT)
    )
    return Fused([Candidate(each, best * scores[each]) for each in ranked], is_enough)


def _is_across(meant: Meant, language: str) -> bool:
    return bool(language and meant.languages) and language not in meant.languages


def _languages(tables: Tables, passage_ids: set[int]) -> dict[int, str]:
    marks = ", ".join("?" * len(passage_ids))
    return {
        passage_id: language or ""
        for passage_id, language in tables.execute(
            "select passage.id, language from passage join document on document.id = document_id"
            f" where passage.id in ({marks})",
            [*passage_ids],
        )
    }
