"""Random models are sound files whose answers are numbers."""

from pathlib import Path

import numpy as np
import pytest

from app.bench.random_model import TYPES, RandomModel
from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.chat_file import check_chat_file
from engine.backends.llama_cpp.gguf_shape import shape_of
from engine.backends.llama_cpp.step_batch import Part
from engine.config import EngineConfig


@pytest.mark.parametrize("type_name", TYPES)
def test_a_model_of_every_type_loads_and_computes(tmp_path: Path, type_name: str) -> None:
    model = RandomModel(name="small", type_name=type_name, width=512, layers=2)
    path = model.write(tmp_path / "small.gguf")
    shape = shape_of(check_chat_file(path))
    assert shape.multiplied.keys() == {type_name}
    config = EngineConfig(model_path=path, context_tokens=256, threads=1)
    backend = LlamaBackend(config)
    assert backend.kv_memory.decode([Part(0, 0, [5, 300, 7], 1)]) is None
    assert np.isfinite(backend.kv_memory.logits(1)).all()
    backend.close()
