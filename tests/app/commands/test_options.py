"""Options travel as JSON and come back the same."""

import json
from dataclasses import asdict

import pytest

from app.commands.options import Options
from app.presets.given import app_presets
from engine.sampling_params import PRESETS, SamplingParams


def test_they_come_back_the_same() -> None:
    options = Options(
        command="chats",
        action="show",
        text="né \ud83d 🙂",
        ids=("a", "b"),
        sampling={"seed": 3, "stop": ["x"]},
        json=True,
        adapters=(("pirate", 0.5), ("/a.gguf", 1.0)),
    )
    assert Options.from_json(json.loads(json.dumps(asdict(options)))) == options


@pytest.mark.parametrize(
    "values",
    [None, [], "x", {}, {"command": "x", "ids": 5}, {"command": "x", "adapters": 5}, {"x": 1}],
)
def test_anything_else_is_refused(values: object) -> None:
    with pytest.raises(TypeError):
        Options.from_json(values)


def test_a_preset_gives_way_to_what_was_given() -> None:
    defaults = SamplingParams(temperature=0.3)
    assert Options(command="generate").params(defaults) == defaults
    precise = app_presets()[0]
    params = Options(command="generate", sampling={"top_k": 3}).params(defaults, precise)
    assert (params.temperature, params.top_k) == (PRESETS["precise"].temperature, 3)
