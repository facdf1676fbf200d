"""The panel stores what differs from the defaults, and nothing else; presets set all of it."""

import json
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from app.chat.answer_form import AnswerForm
from app.chat.example import Example
from app.chat.message import Conversation
from app.presets.preset import Preset
from app.ui.choices import Choices
from app.ui.settings import SettingsPanel
from engine.errors import UsageError
from engine.guided.grammar import GrammarKind
from engine.sampling_params import PRESETS, SamplingParams, with_changes
from tests.fakes_chat import FakeServices

EXAMPLES = (Example("2+2?", "Vier."),)
FORM = AnswerForm.of_own(GrammarKind.REGEX, "a+")


@pytest.fixture
def services(tmp_path: Path) -> Any:
    services = FakeServices(tmp_path)
    yield services
    services.conversations.close()
    services.database.close()


@pytest.fixture
def panel(services: FakeServices) -> Any:
    with gr.Blocks(analytics_enabled=False):
        yield SettingsPanel(services)


def chosen(prompt: str = "", examples: tuple[Example, ...] = (), **changes: Any) -> list[Any]:
    return Choices(prompt, with_changes(SamplingParams(), changes), examples).for_widgets()


def name_of(shown: list[Any]) -> str | None:
    name: str | None = shown[0]["value"]
    return name


def test_untouched_controls_store_nothing(panel: SettingsPanel) -> None:
    choices, changed = panel.changes(chosen("Be kind."))
    assert (choices.system_prompt, changed) == ("Be kind.", {})


def test_a_changed_control_is_stored_by_its_name(panel: SettingsPanel) -> None:
    assert panel.changes(chosen(top_k=7, seed=3))[1] == {"top_k": 7, "seed": 3}


def test_an_impossible_value_is_refused_before_it_is_stored(panel: SettingsPanel) -> None:
    with pytest.raises(UsageError):
        panel.changes(["", '{"temperature": 9.0}', "[]"])


async def test_what_is_possible_is_stored_and_what_is_not_is_said_at_its_field(
    services: FakeServices, panel: SettingsPanel
) -> None:
    made = await services.conversations.create(sampling={"top_k": 3})
    sent = ["Rhyme.", '{"top_k": 5, "temperature": 9}', json.dumps([{"user": "a"}])]
    faults, example_faults = await panel.save(made.conversation_id, *sent)
    assert 'class="fault of-temperature"' in faults and "of-top_k" not in faults
    assert "Examples must be" in example_faults
    stored = await services.conversations.get(made.conversation_id)
    assert (stored.system_prompt, dict(stored.sampling)) == ("Rhyme.", {"top_k": 3})
    assert await panel.save(made.conversation_id, "Rhyme.", '{"top_k": 5}', "[]") == ["", ""]
    stored = await services.conversations.get(made.conversation_id)
    assert dict(stored.sampling) == {"top_k": 5}


async def test_an_opened_conversation_is_not_stored_again(
    services: FakeServices, panel: SettingsPanel
) -> None:
    # What is stored says more than what differs, and stays so until something is chosen.
    made = await services.conversations.create(sampling={"temperature": 0.7, "top_k": 3})
    values = panel.show(await services.conversations.get(made.conversation_id))
    place = panel.outputs.index(panel.system_prompt)
    await panel.save(made.conversation_id, *values[place : place + 3])
    stored = await services.conversations.get(made.conversation_id)
    assert dict(stored.sampling) == {"temperature": 0.7, "top_k": 3}


async def test_examples_are_stored_with_the_conversation(
    services: FakeServices, panel: SettingsPanel
) -> None:
    made = await services.conversations.create()
    await panel.save(made.conversation_id, *chosen(examples=EXAMPLES))
    assert (await services.conversations.get(made.conversation_id)).examples == EXAMPLES


def test_a_conversation_shows_its_own_choices_over_the_defaults(panel: SettingsPanel) -> None:
    conversation = Conversation(
        conversation_id="c",
        title="",
        created_at=0.0,
        updated_at=0.0,
        system_prompt="Rhyme.",
        sampling={"temperature": 0.2},
        examples=EXAMPLES,
    )
    place = panel.outputs.index(panel.system_prompt)
    shown = panel.show(conversation)
    assert name_of(shown[1:]) is None
    assert shown[place : place + 3] == chosen("Rhyme.", EXAMPLES, temperature=0.2)
    shown = panel.show(None)
    assert name_of(shown[1:]) == "Balanced"
    assert shown[place : place + 3] == chosen("You are a helpful assistant.")


@pytest.mark.parametrize("name", PRESETS)
async def test_a_preset_sets_every_control_but_length_and_seed(
    panel: SettingsPanel, name: str
) -> None:
    before = chosen("Rhyme.", EXAMPLES, max_tokens=77, seed=2**64 - 1, dry_multiplier=0.5)
    *values, form = await panel.take_preset(None, name.capitalize(), *before, FORM)
    choices = Choices.of_widgets(values)
    kept = {"max_tokens": 77, "seed": 2**64 - 1}
    assert choices == Choices("Rhyme.", with_changes(PRESETS[name], kept), EXAMPLES)
    assert form == FORM
    assert name_of(await panel.name_preset(*values, form)) == name.capitalize()


async def test_a_saved_preset_sets_all_that_it_holds(
    services: FakeServices, panel: SettingsPanel
) -> None:
    preset = Preset(
        name="House",
        sampling={"temperature": 1.5},
        system_prompt="Speak.",
        form=FORM,
        examples=EXAMPLES,
    )
    services.presets.save(preset)
    made = await services.conversations.create()
    taken = await panel.take_preset(made.conversation_id, "House", *chosen("", seed=3), None)
    *values, form = taken
    assert Choices.of_widgets(values) == Choices("Speak.", preset.params, EXAMPLES)
    assert form == FORM
    assert (await services.conversations.get(made.conversation_id)).answer_form == FORM
    assert name_of(await panel.name_preset(*values, form)) == "House"
    assert name_of(await panel.name_preset(*values, None)) is None


async def test_a_preset_mends_what_was_not_possible(panel: SettingsPanel) -> None:
    *values, _ = await panel.take_preset(None, "Precise", "", '{"temperature": 99}', "[]", None)
    assert Choices.of_widgets(values).params == PRESETS["precise"]


async def test_a_preset_whose_form_no_model_can_be_kept_to_is_not_taken(
    services: FakeServices, panel: SettingsPanel
) -> None:
    broken = AnswerForm.of_own(GrammarKind.REGEX, "a(")
    services.presets.save(Preset(name="Broken", form=broken))
    with pytest.raises(gr.Error, match="The form of the preset Broken cannot be used"):
        await panel.take_preset(None, "Broken", *chosen(), None)


async def test_choices_are_kept_for_new_conversations(
    services: FakeServices, panel: SettingsPanel
) -> None:
    await panel.keep_choices(*chosen("Be brief.", EXAMPLES, top_k=3, stop=["x"]))
    settings = services.settings
    assert settings.default_system_prompt == "Be brief."
    assert dict(settings.default_sampling) == {"top_k": 3, "stop": ["x"]}
    assert settings.default_examples == EXAMPLES
