"""The configuration refuses what the engine could not run."""

from pathlib import Path

import pytest

from engine.adapter import Adapter
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
        {"context_tokens": 2**31},
        {"max_batch_tokens": 2**31},
        {"threads": 513},
        {"kv_disk_bytes": 2**63},
        {"max_running": 9, "max_sequences": 8},
        # Every running request writes a token in one step, so it needs a place in the batch.
        {"max_running": 64, "max_sequences": 64, "max_batch_tokens": 32},
    ],
    ids=str,
)
def test_a_choice_that_cannot_work_is_refused_with_its_figures(choice: dict[str, int]) -> None:
    with pytest.raises(InvalidParams, match=r"\d"):
        EngineConfig(model_path=Path("model.gguf"), **choice)


def test_more_adapters_than_have_a_fixed_order_are_refused() -> None:
    three = tuple(Adapter(Path(f"{name}.gguf")) for name in "abc")
    with pytest.raises(InvalidParams, match="At most 2 adapters can be used at once, got 3"):
        EngineConfig(model_path=Path("model.gguf"), adapters=three)
    silent = (*three[:2], Adapter(three[2].path, 0.0))
    config = EngineConfig(model_path=Path("model.gguf"), adapters=silent)
    assert config.acting_adapters == three[:2]


def test_an_adapter_given_twice_is_refused() -> None:
    twice = (Adapter(Path("a.gguf")), Adapter(Path("a.gguf"), 0.5))
    with pytest.raises(InvalidParams, match="given twice"):
        EngineConfig(model_path=Path("model.gguf"), adapters=twice)
