"""Opening a model: its facts are right, and what cannot be opened says why."""

import shutil
from pathlib import Path

import pytest

from app.presets.given import models_own
from engine.backends.llama_cpp.model import LlamaModel
from engine.errors import InglenookError, ModelDamaged, ModelError, ModelUnsupported
from engine.sampling_params import SamplingParams
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf")


def test_a_tiny_model_tells_its_facts(tiny: Path) -> None:
    model = LlamaModel(tiny)
    info = model.info()
    assert (info.name, info.architecture, info.trained_context) == ("tiny", "llama", 1024)
    assert info.quantization == "all F32"
    # Two layers of 64 numbers each for K and V, two bytes a number.
    assert info.kv_bytes_per_token == 2 * 2 * 64 * 2
    assert (info.bos_text, info.eos_text, info.chat_template) == ("<s>", "</s>", None)
    assert info.sampling == {}
    assert not model.is_recurrent
    model.close()
    model.close()


def test_a_file_tells_what_it_recommends(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "a.gguf", sampling={"temp": 0.6, "top_k": 20, "top_p": 0.95})
    model = LlamaModel(path, facts_only=True)
    own = models_own(model.info().sampling)
    assert own is not None
    assert own.params == SamplingParams(temperature=0.6, top_k=20, top_p=0.95)
    model.close()


def test_a_recurrent_model_is_known_as_one(tmp_path: Path) -> None:
    model = LlamaModel(write_tiny_model(tmp_path / "tiny.gguf", "mamba"))
    assert model.is_recurrent
    model.close()


def test_a_vocabulary_outlives_its_model(tiny: Path) -> None:
    """A text may be tokenized in another thread while the engine is closed."""
    model = LlamaModel(tiny)
    vocabulary = model.vocabulary
    before = vocabulary.encode("abc")
    model.close()
    del model
    assert vocabulary.encode("abc") == before


def test_an_unknown_architecture_is_not_called_damaged(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "new.gguf", "wonder")
    with pytest.raises(ModelUnsupported, match=r"new\.gguf cannot run here .*wonder"):
        LlamaModel(path)


@pytest.mark.parametrize("part", [0.0001, 0.001, 0.005, 0.01, 0.018, 0.02, 0.5, 0.9999])
def test_a_file_that_is_cut_off_is_called_damaged(tiny: Path, tmp_path: Path, part: float) -> None:
    data = tiny.read_bytes()
    path = tmp_path / "short.gguf"
    path.write_bytes(data[: max(4, int(part * len(data)))])
    with pytest.raises(ModelDamaged, match=r"short\.gguf"):
        LlamaModel(path)


def test_a_file_that_may_not_be_read_says_so(tiny: Path, tmp_path: Path) -> None:
    path = tmp_path / "secret.gguf"
    shutil.copy(tiny, path)
    path.chmod(0)
    try:
        path.open("rb").close()
    except PermissionError:
        with pytest.raises(ModelError, match="cannot be read"):
            LlamaModel(path)
    else:
        pytest.skip("this user may read everything")


@pytest.mark.parametrize("version", [1, 4, 0x03000000], ids=["old", "new", "other byte order"])
def test_another_version_of_the_format_is_refused(tiny: Path, tmp_path: Path, version: int) -> None:
    data = tiny.read_bytes()
    path = tmp_path / "other.gguf"
    path.write_bytes(data[:4] + version.to_bytes(4, "little") + data[8:])
    with pytest.raises(InglenookError, match=r"other\.gguf"):
        LlamaModel(path)
