"""Questions with the places of their answers, as `eval docs` reads them.

`questions.jsonl` in a folder, an object in each line; the documents lie in `docs` beside it:

    {"set": "papers", "lang": "en", "index": ["papers/en"], "question": "How long is the Inn?",
     "answers": ["518 kilometres"], "answerable": true,
     "gold": [{"doc": "papers/en/rivers.pdf", "page": 12, "passage": "The Inn is ..."}]}

`index` names the folders of `docs` that the question is asked of; `page` and `passage` may be null.
"""

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.documents.quotation import Quotation
from app.documents.scope import Scope
from engine.errors import UsageError

SHINGLE = 40
"""Characters in a row that two texts share where one has a part of the other."""


@dataclass(frozen=True, slots=True)
class Gold:
    """Where an answer stands."""

    path: str
    page: int | None
    passage: str

    def is_in(self, quotation: Quotation) -> bool:
        if self.path not in quotation.paths:
            return False
        if self.page is not None:
            return quotation.page <= self.page <= quotation.page_to
        text, passage = _plain(quotation.text), _plain(self.passage)
        starts = range(0, max(1, len(passage) - SHINGLE + 1), SHINGLE)
        return not passage or any(passage[start : start + SHINGLE] in text for start in starts)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question; without `gold` nothing in its documents answers it."""

    subset: str
    language: str
    text: str
    scope: Scope
    answers: tuple[str, ...]
    gold: tuple[Gold, ...]

    @property
    def name(self) -> str:
        return f"{self.subset}/{self.language}"

    def is_answered_in(self, quotation: Quotation) -> bool:
        return any(each.is_in(quotation) for each in self.gold)


def read_asked(folder: Path) -> list[Asked]:
    """Raises UsageError where there are none."""
    path, docs = folder / "questions.jsonl", folder.absolute() / "docs"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [_asked(json.loads(line), docs) for line in lines if line.strip()]
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name its folder.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} has no questions with their places ({error}).") from error


def _plain(text: str) -> str:
    """The signs of Chinese are kept in their narrow form."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _asked(found: Mapping[str, Any], docs: Path) -> Asked:
    return Asked(
        subset=str(found["set"]),
        language=str(found["lang"]),
        text=str(found["question"]),
        scope=Scope(paths=tuple(str(docs / each) for each in found["index"])),
        answers=tuple(map(str, found["answers"])),
        gold=tuple(
            Gold(str(docs / each["doc"]), each["page"], each["passage"] or "")
            for each in found["gold"]
        ),
    )
