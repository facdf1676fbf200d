"""What a file predicts of a text, compared with the model's own tests of logits."""

from pathlib import Path

import numpy as np
import pytest

from app.eval.predicted import ROWS, Predictor
from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.model import LlamaModel
from engine.errors import UsageError
from tests.engine.backends.llama_cpp.model_run import logits_after
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf")


def test_windows_are_whole_and_begin_as_the_model_wants_it(tiny: Path) -> None:
    with Predictor(tiny, window=64, threads=1) as predictor:
        windows = predictor.windows(list(range(10, 210)), 8)
        assert [len(window) for window in windows] == [64, 64, 64]
        assert [window[0] for window in windows] == [1, 1, 1]
        assert [window[1] for window in windows] == [10, 73, 136]
        assert len(predictor.windows(list(range(10, 210)), 2)) == 2


def test_each_row_predicts_the_token_after_it(tiny: Path) -> None:
    window = [1, *np.random.default_rng(0).integers(3, 260, 299).tolist()]
    with Predictor(tiny, window=300, threads=1) as predictor:
        pieces = [
            (piece.logits.copy(), list(piece.targets)) for piece in predictor.pieces([window])
        ]
        assert predictor.read_tokens_per_second > 0 and predictor.write_tokens_per_second() > 0
    assert [target for _, targets in pieces for target in targets] == window[151:]
    assert max(len(logits) for logits, _ in pieces) == ROWS
    model = LlamaModel(tiny)
    context = LlamaContext(model, num_cells=512, num_sequences=1, max_batch_tokens=64)
    context.set_threads(1)
    alone = logits_after(context, window[:151])
    context.close()
    model.close()
    assert np.abs(pieces[0][0][0] - alone).max() < 0.05


def test_a_type_of_kv_that_the_heads_have_no_room_for_is_one_sentence(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = LlamaModel.kv_shape.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(
        LlamaModel,
        "kv_shape",
        property(lambda self: type(shape(self))(64, frozenset([80]), True)),
    )
    with pytest.raises(UsageError, match="80 numbers, and q4_0 needs a multiple of 32"):
        Predictor(tiny, window=64, threads=1, kv_type="q4_0")


@pytest.mark.parametrize("kind", ["gemma3", "mamba", "jamba", "lfm2"])
def test_every_kind_of_model_can_be_read(tmp_path: Path, kind: str) -> None:
    path = write_tiny_model(tmp_path / "kind.gguf", kind)
    with Predictor(path, window=128, threads=1) as predictor:
        windows = predictor.windows(list(range(3, 259)), 2)
        pieces = list(predictor.pieces(windows))
    assert sum(len(piece.targets) for piece in pieces) == 2 * 63
    assert all(np.isfinite(piece.logits).all() for piece in pieces)
