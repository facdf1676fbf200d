from dataclasses import replace

import pytest

from app.documents.embedding.embedder import Embedder, Prefixes, embedder_from, prefixes_for

FACTS = {
    "name": "multilingual-e5-small",
    "sha256": "ab" * 32,
    "width": 384,
    "pooling": "mean",
    "num_words": 250_037,
    "wants_normal": True,
}


@pytest.mark.parametrize(
    ("name", "prefixes"),
    [
        ("multilingual-e5-small", Prefixes("query: ", "passage: ")),
        ("nomic-embed-text-v1.5", Prefixes("search_query: ", "search_document: ")),
        (
            "BGE Small En v1.5",
            Prefixes("Represent this sentence for searching relevant passages: "),
        ),
        ("bge-m3", Prefixes()),
        ("all-MiniLM-L6-v2", Prefixes()),
    ],
)
def test_a_known_model_has_its_prefixes(name: str, prefixes: Prefixes) -> None:
    assert prefixes_for(name, "file.gguf") == prefixes
    assert prefixes_for("", f"{name}.Q8_0.gguf") == prefixes


def test_only_questions_get_an_instruction() -> None:
    found = prefixes_for("Qwen3 Embedding 0.6B")
    assert found.query.startswith("Instruct: ") and found.query.endswith("Query: ")
    assert found.passage == ""


def test_what_changes_vectors_changes_the_key() -> None:
    embedder = embedder_from(FACTS, "/a/e5.gguf")
    assert replace(embedder, path="/b/e5.gguf", languages=("en",)).key == embedder.key
    assert replace(embedder, sha256="cd" * 32).key != embedder.key
    assert replace(embedder, pooling="cls").key != embedder.key
    assert replace(embedder, prefixes=Prefixes("query: ")).key != embedder.key


def test_a_large_vocabulary_knows_every_language_and_a_small_one_english() -> None:
    assert embedder_from(FACTS, "a").knows(("th",))
    small = embedder_from({**FACTS, "num_words": 30_522}, "a")
    assert small.knows(("en", "nl")) and not small.knows(("de",)) and not small.knows(())
    assert embedder_from({**FACTS, "num_words": 30_522}, "a", languages=("de",)).knows(("de",))


def test_it_comes_back_from_its_text() -> None:
    embedder = embedder_from(FACTS, "/a/e5.gguf", languages=("de", "en"))
    assert Embedder.from_json(embedder.as_json()) == embedder


@pytest.mark.parametrize("facts", [{}, {**FACTS, "width": 0}, {**FACTS, "width": "x"}])
def test_facts_without_sense_are_refused(facts: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        embedder_from(facts, "a")
