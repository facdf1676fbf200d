"""The configuration refuses what the engine could not run."""

from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.errors import InvalidParams


@pytest.mark.parametrize(
    "choice",
    [
        {"context_tokens": 255},
        {"max_running": 0},
        {"max_batch_tokens": 31},
        {"threads": 0},
        {"max_sequences": 256},
        {"max_running": 9, "max_sequences": 8},
        # Every running request writes a token in one step, so it needs a place in the batch.
        {"max_running": 64, "max_sequences": 64, "max_batch_tokens": 32},
    ],
    ids=str,
)
def test_a_choice_that_cannot_work_is_refused_with_its_figures(choice: dict[str, int]) -> None:
    with pytest.raises(InvalidParams, match=r"\d"):
        EngineConfig(model_path=Path("model.gguf"), **choice)
