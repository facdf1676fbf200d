from pathlib import Path

import numpy as np
import pytest

from app.documents.embedding.minilm import convert
from engine.backends.llama_cpp.embedding_model import EmbeddingModel, Pooling
from engine.errors import ModelDamaged, ModelNotFound, ModelUnsupported
from tests.bert import embed, load_weights, token_ids
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.tiny_bert import EPSILON, HEADS, WIDTH, WORDS, write_tiny_package

TEXTS = ("The house of bread.", "river, river?", "wars 1914", "qqq \u4e2d \u00dcber houses")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_tiny_package(tmp_path / "model")


@pytest.fixture
def file(package: Path, tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    convert(package, path)
    return path


def test_a_bert_computes_what_plain_numpy_does(package: Path, file: Path) -> None:
    model = EmbeddingModel(file)
    weights = load_weights(package / "model.safetensors")
    words = {word: number for number, word in enumerate(WORDS)}
    for text in TEXTS:
        exact = embed(weights, token_ids(words, text), HEADS, EPSILON)
        assert model.embed(text) @ exact > 0.999, text
    assert model.info.pooling is Pooling.MEAN
    assert model.info.width == WIDTH
    model.close()


def test_a_text_gives_the_same_vector_every_time_and_of_length_one(file: Path) -> None:
    model = EmbeddingModel(file)
    first = model.embed("the river")
    model.embed("of war")
    np.testing.assert_array_equal(model.embed("the river"), first)
    assert np.linalg.norm(first) == pytest.approx(1)
    model.close()


def test_a_text_without_words_has_a_vector(file: Path) -> None:
    model = EmbeddingModel(file)
    assert np.isfinite(model.embed("")).all()
    model.close()


def test_a_long_text_is_read_to_its_end(file: Path) -> None:
    model = EmbeddingModel(file)
    half = "the house of bread . " * 18
    whole = model.embed(half + "river war " * 45)
    assert model.max_tokens < 180
    # The mean of its windows: neither half alone.
    assert whole @ model.embed(half) < 0.9999
    np.testing.assert_allclose(np.linalg.norm(whole), 1, rtol=1e-5)
    model.close()


def test_a_control_mark_in_a_text_is_text(file: Path) -> None:
    model = EmbeddingModel(file)
    assert not np.allclose(model.embed("river [SEP]"), model.embed("river"))
    model.close()


def test_a_chat_model_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "chat.gguf")
    with pytest.raises(ModelUnsupported, match="chat.gguf is no embedding model"):
        EmbeddingModel(path)


def test_what_is_no_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound):
        EmbeddingModel(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("words")
    with pytest.raises(ModelDamaged):
        EmbeddingModel(tmp_path / "text.gguf")
