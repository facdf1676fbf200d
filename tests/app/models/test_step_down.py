"""What is tried when memory is too small."""

from pathlib import Path

from app.models.step_down import steps_down
from engine.adapter import Adapter
from engine.config import EngineConfig

MODEL, STARTER = Path("large.gguf"), Path("starter.gguf")


def test_first_a_smaller_context_then_coarser_kv_then_the_starter() -> None:
    config = EngineConfig(model_path=MODEL, context_tokens=4096)
    steps = [
        (step.config.model_path, step.config.context_tokens, step.config.kv_type)
        for step in steps_down(config, STARTER)
    ]
    assert steps == [
        (MODEL, 2048, "auto"),
        (MODEL, 1024, "auto"),
        (MODEL, 1024, "q8_0"),
        (STARTER, 4096, "auto"),
    ]


def test_an_adapter_stays_with_its_model_and_does_not_change_the_starter() -> None:
    pirate = Adapter(Path("pirate.gguf"))
    config = EngineConfig(model_path=MODEL, adapters=(pirate,))
    *same, last = steps_down(config, STARTER)
    assert {step.config.adapters for step in same} == {(pirate,)}
    assert (last.config.model_path, last.config.adapters) == (STARTER, ())


def test_what_is_small_already_has_fewer_steps() -> None:
    config = EngineConfig(model_path=STARTER, context_tokens=1024, kv_type="q8_0")
    assert list(steps_down(config, STARTER)) == []
    assert [step.config.model_path for step in steps_down(config, None)] == []


def test_every_step_says_what_it_changes() -> None:
    config = EngineConfig(model_path=MODEL)
    changes = [step.change for step in steps_down(config, STARTER)]
    assert changes[0] == "with a context of 4,096 tokens instead"
    assert "q8_0" in changes[-2] and "starter model" in changes[-1]
