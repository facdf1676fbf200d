"""An embedding model: what it is, what goes before a text, and which languages it knows."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

MANY_WORDS = 100_000
"""A vocabulary of so many was made of many languages; one of English has 30,000."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What goes before a question and before a passage: the model was trained with it."""

    query: str = ""
    passage: str = ""


INSTRUCTION = "Instruct: Given a question, retrieve passages that answer it\nQuery: "
PREFIXES: tuple[tuple[str, Prefixes], ...] = (
    ("qwen3-embedding", Prefixes(INSTRUCTION)),
    ("e5-mistral", Prefixes(INSTRUCTION)),
    ("multilingual-e5-large-instruct", Prefixes(INSTRUCTION)),
    ("embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    ("nomic-embed", Prefixes("search_query: ", "search_document: ")),
    ("bge-m3", Prefixes()),
    ("bge", Prefixes("Represent this sentence for searching relevant passages: ")),
    ("arctic-embed", Prefixes("Represent this sentence for searching relevant passages: ")),
    ("mxbai-embed", Prefixes("Represent this sentence for searching relevant passages: ")),
    ("e5", Prefixes("query: ", "passage: ")),
)
"""By what stands in the name of the model or of its file; the first that fits."""


def prefixes_for(*names: str) -> Prefixes:
    said = " ".join(names).lower().replace("_", "-").replace(" ", "-")
    return next((each for part, each in PREFIXES if part in said), Prefixes())


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """`languages` are those that it knows; empty: all of them. `wants_normal`: as in
    EmbeddingInfo. `sha256` is that of the file at `path`."""

    name: str
    path: str
    sha256: str
    width: int
    pooling: str
    prefixes: Prefixes
    languages: tuple[str, ...] = ()
    wants_normal: bool = False

    @property
    def key(self) -> str:
        """Vectors of the same key can be compared."""
        said = json.dumps([self.sha256, self.prefixes.query, self.prefixes.passage, self.pooling])
        return hashlib.sha256(said.encode()).hexdigest()

    def knows(self, languages: Sequence[str]) -> bool:
        """Whether a text in one of these is understood; none: nobody knows in which it is."""
        return not self.languages or any(each in self.languages for each in languages)

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Embedder":
        values = json.loads(text)
        values["prefixes"] = Prefixes(**values["prefixes"])
        values["languages"] = tuple(values["languages"])
        return cls(**values)


def embedder_from(
    facts: Mapping[str, Any],
    path: str,
    prefixes: Prefixes | None = None,
    languages: Sequence[str] | None = None,
) -> Embedder:
    """What a process says of the model that it has opened, with what a person has chosen. Raises
    KeyError, TypeError, ValueError for what makes no sense."""
    found = Embedder(
        name=str(facts["name"]),
        path=path,
        sha256=str(facts["sha256"]),
        width=int(facts["width"]),
        pooling=str(facts["pooling"]),
        prefixes=prefixes_for(str(facts["name"]), path.replace("\\", "/").rpartition("/")[2]),
        languages=() if int(facts["num_words"]) >= MANY_WORDS else ("en",),
        wants_normal=bool(facts["wants_normal"]),
    )
    if not 0 < found.width <= 16_384:
        raise ValueError(f"a width of {found.width}")
    if prefixes is not None:
        found = replace(found, prefixes=prefixes)
    return found if languages is None else replace(found, languages=tuple(languages))
