"""Presets on the page: saved, replaced, renamed, deleted and taken from a file, with questions."""

from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from app.chat.answer_form import AnswerForm
from app.chat.example import Example
from app.presets.preset import Preset
from app.ui.choices import Choices
from app.ui.presets import DELETE, EXAMPLES, FORM, PROMPT, RENAME, REPLACE, SAVE, PresetPicker
from engine.guided.grammar import GrammarKind
from engine.sampling_params import SamplingParams
from tests.fakes_chat import FakeServices

PAIRS = (Example("2+2?", "Vier."),)
REGEX = AnswerForm.of_own(GrammarKind.REGEX, "a+")
NOW = [*Choices("Rhyme.", SamplingParams(top_k=3, seed=7), PAIRS).for_widgets(), REGEX]


@pytest.fixture
def services(tmp_path: Path) -> Any:
    services = FakeServices(tmp_path)
    yield services
    services.conversations.close()
    services.database.close()


@pytest.fixture
def picker(services: FakeServices) -> Any:
    with gr.Blocks(analytics_enabled=False):
        yield PresetPicker(services)


def said(done: list[Any]) -> str:
    return str(done[-1]["value"])


async def test_the_present_choices_are_kept_with_what_is_ticked(
    services: FakeServices, picker: PresetPicker
) -> None:
    task, _, _, _, parts, label = await picker.ask_save(*NOW)
    assert (task, label, parts["value"]) == (SAVE, SAVE, [FORM, EXAMPLES])
    await picker.answer(SAVE, "", " My  own ", [PROMPT, FORM, EXAMPLES], *NOW)
    (saved,) = services.presets.saved()
    assert saved == Preset(
        name="My own",
        sampling={"top_k": 3, "seed": 7},
        system_prompt="Rhyme.",
        form=REGEX,
        examples=PAIRS,
    )
    done = await picker.answer(SAVE, "", "Bare", [], *NOW)
    bare = services.presets.get("Bare")
    assert (bare.system_prompt, bare.form, bare.examples) == (None, None, None)
    assert done[0]["value"] == "Bare" and "Saved" in said(done)


async def test_another_of_the_same_name_is_asked_about_and_never_lost_unasked(
    services: FakeServices, picker: PresetPicker
) -> None:
    services.presets.save(Preset(name="Mine"))
    asked = await picker.answer(SAVE, "", "mine", [], *NOW)
    assert asked[len(picker.outputs)] == REPLACE
    assert services.presets.saved() == (Preset(name="Mine"),)
    await picker.answer(REPLACE, "", "mine", [], *NOW)
    assert services.presets.get("Mine").sampling == {"top_k": 3, "seed": 7}


async def test_one_is_renamed_and_deleted(services: FakeServices, picker: PresetPicker) -> None:
    services.presets.save(Preset(name="Mine <b>"))
    question = (await picker.ask_rename("Mine <b>"))[2]
    assert "<b>" not in question
    await picker.answer(RENAME, "Mine <b>", "Yours", [], *NOW)
    assert [each.name for each in services.presets.saved()] == ["Yours"]
    assert "cannot be brought back" in (await picker.ask_delete("Yours"))[2]
    await picker.answer(DELETE, "Yours", "", [], *NOW)
    assert services.presets.saved() == ()


async def test_only_saved_ones_can_be_renamed_and_deleted(
    services: FakeServices, picker: PresetPicker
) -> None:
    services.presets.save(Preset(name="Mine"))
    for name, may_change, may_export in (
        ("Mine", True, True),
        ("Precise", False, True),
        (None, False, False),
        ("Gone", False, False),
    ):
        _, rename, delete, export = picker.show(name)
        found = rename["interactive"], delete["interactive"], export["interactive"]
        assert found == (may_change, may_change, may_export)


async def test_a_file_of_somebody_else_is_added_and_not_yet_taken(
    services: FakeServices, picker: PresetPicker
) -> None:
    services.presets.save(Preset(name="Mine"))
    text = Preset(name="Mine", sampling={"top_k": 9}, form=REGEX).as_text()
    done = await picker.take_file(text)
    assert services.presets.get("Mine 2").sampling == {"top_k": 9}
    assert done[0]["value"] is None and "Mine&#x00020;2" in said(done) or "Mine 2" in said(done)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "no preset of Inglenook"),
        (Preset(name="A", sampling={"top_k": -1}).as_text(), "top_k must be between"),
        (
            Preset(name="A", form=AnswerForm.of_own(GrammarKind.REGEX, "a(")).as_text(),
            "The form of the preset A cannot be used",
        ),
    ],
)
async def test_a_file_that_cannot_be_used_is_refused_and_nothing_is_stored(
    services: FakeServices, picker: PresetPicker, text: str, words: str
) -> None:
    with pytest.raises(gr.Error, match=words):
        await picker.take_file(text)
    assert services.presets.saved() == ()


async def test_a_damaged_file_leaves_the_given_ones(
    services: FakeServices, picker: PresetPicker, tmp_path: Path
) -> None:
    (tmp_path / "presets.json").write_text("{")
    assert picker.show("Precise")[0]["choices"] == ["Precise", "Balanced", "Creative"]
    assert picker.named(Choices("", SamplingParams()), None) == "Balanced"
    with pytest.raises(gr.Error, match="cannot be read"):
        await picker.answer(SAVE, "", "Mine", [], *NOW)
