"""Which embedding model a person has chosen."""

from dataclasses import dataclass
from typing import Final

from app.documents.embedding.embedder import Prefixes

NONE: Final = "none"
ENGLISH: Final = "english"
MULTILINGUAL: Final = "multilingual"
ALL_LANGUAGES: Final = "all"
NAMES: Final = (NONE, ENGLISH, MULTILINGUAL)


@dataclass(frozen=True, slots=True)
class EmbedderChoice:
    """`model` is one of the names above, or a GGUF file. None: what is known of the model; the
    languages are those it knows, and "all" is all of them."""

    model: str = ENGLISH
    query_prefix: str | None = None
    passage_prefix: str | None = None
    languages: tuple[str, ...] | None = None

    @property
    def prefixes(self) -> Prefixes | None:
        if self.query_prefix is None and self.passage_prefix is None:
            return None
        return Prefixes(self.query_prefix or "", self.passage_prefix or "")

    @property
    def known_languages(self) -> tuple[str, ...] | None:
        if self.languages is None:
            return ("en",) if self.model == ENGLISH else None
        return () if ALL_LANGUAGES in self.languages else self.languages
