"""The panel stores what differs from the defaults, and nothing else."""

from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from app.chat.message import Conversation
from app.ui.settings import NAMES, SettingsPanel, preset_of
from engine.errors import InvalidParams
from engine.sampling_params import PRESETS, RANGES, SamplingParams, with_changes
from tests.fakes_chat import FakeServices


@pytest.fixture
def panel(tmp_path: Path) -> Any:
    services = FakeServices(tmp_path)
    with gr.Blocks(analytics_enabled=False):
        yield SettingsPanel(services)
    services.database.close()


def choices(prompt: str = "", **changes: Any) -> list[Any]:
    params = with_changes(SamplingParams(), changes)
    return [prompt, *(getattr(params, name) for name in NAMES)]


def test_untouched_controls_store_nothing(panel: SettingsPanel) -> None:
    assert panel.changes(choices("Be kind.")) == ("Be kind.", {})


def test_a_changed_control_is_stored_by_its_name(panel: SettingsPanel) -> None:
    assert panel.changes(choices(top_k=7, seed=3))[1] == {"top_k": 7, "seed": 3}


def test_a_slider_sends_floats_and_whole_numbers_are_stored(panel: SettingsPanel) -> None:
    sent = choices()
    sent[1 + NAMES.index("top_k")] = 7.0
    (stored,) = panel.changes(sent)[1].values()
    assert (stored, type(stored)) == (7, int)


def test_an_impossible_value_is_refused_before_it_is_stored(panel: SettingsPanel) -> None:
    sent = choices()
    sent[1 + NAMES.index("temperature")] = 9.0
    with pytest.raises(InvalidParams):
        panel.changes(sent)


def test_a_conversation_shows_its_own_choices_over_the_defaults(panel: SettingsPanel) -> None:
    conversation = Conversation(
        conversation_id="c",
        title="",
        created_at=0.0,
        updated_at=0.0,
        system_prompt="Rhyme.",
        sampling={"temperature": 0.2},
    )
    _, preset, prompt, temperature, *_ = panel.show(conversation)
    assert (preset, prompt, temperature) == (None, "Rhyme.", 0.2)
    _, preset, prompt, temperature, *_ = panel.show(None)
    assert (preset, prompt, temperature) == ("Balanced", "You are a helpful assistant.", 0.7)


@pytest.mark.parametrize("name", PRESETS)
async def test_a_preset_sets_every_control_but_length_and_seed(
    panel: SettingsPanel, name: str
) -> None:
    values = await panel.take_preset(name.capitalize(), 77, 5)
    _, changed = panel.changes(["", *values])
    params = with_changes(SamplingParams(), changed)
    assert (params.max_tokens, params.seed) == (77, 5)
    assert preset_of(params) == name.capitalize()


def test_values_beyond_the_sliders_are_shown_and_sent_as_they_are(panel: SettingsPanel) -> None:
    stored = {"max_tokens": 20_000, "temperature": 4, "top_k": 1000}
    params = with_changes(SamplingParams(), stored)
    sent = [
        control.preprocess(control.postprocess(getattr(params, name)))
        for name, control in zip(NAMES, panel.sampling, strict=True)
    ]
    assert panel.changes(["", *sent])[1] == stored


def test_a_slider_offers_what_the_engine_takes_and_nothing_beyond(panel: SettingsPanel) -> None:
    sliders = dict(zip(NAMES, panel.sampling, strict=True))
    for name, low, high in RANGES:
        if name in sliders:
            assert low <= sliders[name].minimum < sliders[name].maximum <= high
    assert (sliders["temperature"].minimum, sliders["temperature"].maximum) == (0.0, 5.0)
