"""Folders of safetensors: read without the library that wrote them."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from engine.backends.torch.safetensors_weights import SafetensorsWeights
from engine.errors import ModelDamaged, ModelNotFound, ModelUnsupported
from tests.engine.backends.torch.tiny_models import KINDS

TENSORS = {
    "a.weight": torch.arange(12, dtype=torch.float32).reshape(3, 4) / 7,
    "b.weight": torch.arange(6, dtype=torch.float32).reshape(2, 3).to(torch.bfloat16) / 3,
    "c.weight": torch.tensor([1.5, -2.0], dtype=torch.float16),
    "d": torch.tensor(7, dtype=torch.int64),
}


def test_tensors_are_read_as_they_were_written(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "model.safetensors")
    source = SafetensorsWeights(tmp_path)
    assert set(source.names) == set(TENSORS)
    for name, tensor in TENSORS.items():
        found = source.read(name)
        assert isinstance(found, torch.Tensor)
        assert found.dtype == tensor.dtype and torch.equal(found, tensor)
        assert source.size_of(name) == tensor.numel() * tensor.element_size()
    assert source.num_parameters == 12 + 6 + 2 + 1
    assert source.num_rows == {"a.weight": 3, "b.weight": 2, "c.weight": 2}
    assert source.main_type == "F32"


def test_a_model_in_several_files_is_one(tmp_path: Path) -> None:
    model = KINDS["llama"].make()
    model.save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    source = SafetensorsWeights(tmp_path)
    for name, tensor in model.state_dict().items():
        found = source.read(name)
        assert isinstance(found, torch.Tensor) and torch.equal(found, tensor)
    next(tmp_path.glob("*-00002-*")).unlink()
    with pytest.raises(ModelNotFound, match="00002"):
        SafetensorsWeights(tmp_path)


def test_an_index_names_no_file_outside_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    save_file(TENSORS, tmp_path / "other.safetensors")
    index = {"weight_map": {"a.weight": "../other.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelNotFound):
        SafetensorsWeights(folder)


@pytest.mark.parametrize("kept", [4, 8, 40, 200, -1])
def test_what_breaks_off_is_refused(kept: int, tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    save_file(TENSORS, file)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ModelDamaged, match="bring the folder"):
        SafetensorsWeights(tmp_path)


def test_a_header_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    for header in (b"[]", b"{", b'{"a": {"dtype": "F32"}}', b'{"a": 1}'):
        file.write_bytes(len(header).to_bytes(8, "little") + header)
        with pytest.raises(ModelDamaged):
            SafetensorsWeights(tmp_path)


def test_places_that_do_not_fit_the_shape_are_refused(tmp_path: Path) -> None:
    header = b'{"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 8]}}'
    file = tmp_path / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ModelDamaged, match="within a"):
        SafetensorsWeights(tmp_path).read("a")


def test_types_that_are_not_run_are_refused_by_name(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(4).to(torch.float8_e4m3fn)}, tmp_path / "model.safetensors")
    with pytest.raises(ModelUnsupported, match="F8_E4M3"):
        SafetensorsWeights(tmp_path).read("a")


def test_without_weights_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="a safetensors file is missing"):
        SafetensorsWeights(tmp_path)
