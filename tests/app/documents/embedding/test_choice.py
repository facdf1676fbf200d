from app.documents.embedding.choice import MULTILINGUAL, EmbedderChoice
from app.documents.embedding.embedder import Prefixes


def test_the_english_model_knows_english_and_of_others_their_file_tells() -> None:
    assert EmbedderChoice().known_languages == ("en",)
    assert EmbedderChoice(MULTILINGUAL).known_languages is None
    assert EmbedderChoice("/a.gguf", languages=("de", "en")).known_languages == ("de", "en")
    assert EmbedderChoice("/a.gguf", languages=("all",)).known_languages == ()


def test_one_prefix_that_is_said_means_that_the_other_is_none() -> None:
    assert EmbedderChoice("/a.gguf").prefixes is None
    assert EmbedderChoice("/a.gguf", query_prefix="q: ").prefixes == Prefixes("q: ", "")
    assert EmbedderChoice("/a.gguf", passage_prefix="").prefixes == Prefixes("", "")
