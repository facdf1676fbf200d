from pathlib import Path

import pytest

from app.documents.embedding.minilm import convert, package_folder
from engine.backends.llama_cpp.embedding_model import EmbeddingModel
from engine.errors import ModelDamaged
from tests.bert import embed, load_weights, token_ids
from tests.tiny_bert import write_tiny_package

SENTENCES = (
    "The Panthers defense gave up just 308 points, ranking sixth in the league.",
    "Unaffable na\u00efvet\u00e9 cost 3.5\u00a0million, didn't it?",
    "Photosynthesis converts light energy into chemical energy.",
)


def test_files_that_are_damaged_say_so(tmp_path: Path) -> None:
    folder = write_tiny_package(tmp_path / "model")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    with pytest.raises(ModelDamaged, match="install its package again"):
        convert(folder, tmp_path / "tiny.gguf")
    assert not (tmp_path / "tiny.gguf").exists()


@pytest.mark.skipif(package_folder() is None, reason="the package is not installed")
def test_the_real_one_computes_what_was_published(tmp_path: Path) -> None:
    folder = package_folder()
    assert folder is not None
    convert(folder, tmp_path / "minilm.gguf")
    model = EmbeddingModel(tmp_path / "minilm.gguf")
    weights = load_weights(folder / "model.safetensors")
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    words = {word: number for number, word in enumerate(lines)}
    found = [
        model.embed(text) @ embed(weights, token_ids(words, text), 12, 1e-12) for text in SENTENCES
    ]
    model.close()
    assert sum(found) / len(found) > 0.999
