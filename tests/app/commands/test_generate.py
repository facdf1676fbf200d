"""`generate`: one answer, as it comes or as one object."""

import asyncio
from typing import Any

import pytest

from app.chat.answer_form import AnswerForm
from app.chat.example import Example
from app.commands.carry_out import carry_out
from app.commands.generate import CUT_NOTICE
from app.commands.options import Options
from app.presets.preset import Preset
from engine.errors import EngineError, GrammarError, InvalidParams, UsageError
from engine.guided.grammar import Grammar, GrammarKind
from engine.kv.segment import NOBODY
from engine.request import FinishReason
from engine.sampling_params import PRESETS
from tests.app.commands.console import Recorder
from tests.fakes_model import FakeModelServices
from tests.waiting import until

UNIQUE = '{"type": "array", "uniqueItems": true}'


async def generate(services: FakeModelServices, **options: Any) -> Recorder:
    console = Recorder()
    await carry_out(services, Options(command="generate", **{"text": "Hi", **options}), console)
    return console


async def test_the_answer_is_written(services: FakeModelServices) -> None:
    console = await generate(services)
    assert (console.out, console.notes) == ("Good day 🙂\n", [])
    assert await services.conversations.list() == []


async def test_the_answer_as_one_object(services: FakeModelServices) -> None:
    result = (await generate(services, json=True)).json()
    assert result["text"] == "Good day 🙂"
    assert (result["finish_reason"], result["backend"]) == ("stop", "fake")
    assert result["model"] == "fake-model"
    assert result["usage"]["completion_tokens"] == result["timings"]["completion_tokens"] == 13


async def test_thinking_is_kept_out_of_the_answer(services: FakeModelServices) -> None:
    services.engine.script = "<think>Hm.</think>Paris."
    assert (await generate(services)).out == "Paris.\n"
    result = (await generate(services, json=True)).json()
    assert (result["text"], result["thinking"]) == ("Paris.", "Hm.")


async def test_a_notice_stands_beside_the_answer(services: FakeModelServices) -> None:
    services.engine.script = None
    for is_json in (False, True):
        asking = asyncio.create_task(generate(services, json=is_json))
        await until(lambda: services.engine.num_running)
        services.engine.streams[-1].end("x", FinishReason.LENGTH, "The context is full.")
        console = await asking
        if is_json:
            assert console.json()["notice"] == "The context is full."
            assert console.json()["finish_reason"] == "length"
        else:
            assert console.notes == ["The context is full."]


async def test_an_answer_cut_at_its_longest_says_so_and_what_helps(
    services: FakeModelServices,
) -> None:
    services.engine.script = None
    asking = asyncio.create_task(generate(services))
    await until(lambda: services.engine.num_running)
    services.engine.streams[-1].end("x", FinishReason.LENGTH, finish="max_tokens")
    assert (await asking).notes == [CUT_NOTICE]
    assert "--max-tokens" in CUT_NOTICE


async def test_what_is_odd_about_the_model_is_said_beside_the_answer(
    services: FakeModelServices,
) -> None:
    (await services.chat_model()).template.notice = "It was never trained to chat."
    assert (await generate(services)).notes == ["It was never trained to chat."]
    assert (await generate(services, json=True)).json()["notice"] == "It was never trained to chat."


async def test_controls_and_presets_reach_the_engine(services: FakeModelServices) -> None:
    await generate(services, preset="creative", sampling={"seed": 3, "stop": ["a"]})
    params = services.engine.streams[-1].params
    assert params.temperature == PRESETS["creative"].temperature
    assert (params.seed, params.stop) == (3, ("a",))


async def test_a_saved_preset_brings_its_prompt_examples_and_form(
    services: FakeModelServices,
) -> None:
    services.presets.save(
        Preset(
            name="House style",
            sampling={"temperature": 1.5, "max_tokens": 9},
            system_prompt="Speak like a pirate.",
            form=AnswerForm.of_own(GrammarKind.REGEX, "Good.*"),
            examples=(Example("2+2?", "Vier."),),
        )
    )
    await generate(services, preset="house STYLE", sampling={"seed": 3})
    stream = services.engine.streams[-1]
    tokenizer = (await services.chat_model()).loaded.tokenizer
    prompt = b"".join(map(tokenizer.token_bytes, stream.prompt))
    assert b"pirate" in prompt and b"Vier." in prompt
    assert (stream.params.temperature, stream.params.max_tokens, stream.params.seed) == (1.5, 9, 3)
    assert stream.guidance is not None and stream.guidance.grammar.grammar.source == "Good.*"
    await generate(services, preset="House style", system="Be kind.")
    prompt = b"".join(map(tokenizer.token_bytes, services.engine.streams[-1].prompt))
    assert b"pirate" not in prompt and b"Be kind." in prompt


async def test_a_preset_that_there_is_not_is_refused_with_those_there_are(
    services: FakeModelServices,
) -> None:
    with pytest.raises(UsageError, match="no preset 'wild'; there are Precise, Balanced, Creative"):
        await generate(services, preset="wild")
    assert services.loaded_model is None
    with pytest.raises(UsageError, match="recommends nothing"):
        await generate(services, preset="model's own")


async def test_several_answers_come_one_after_the_other(services: FakeModelServices) -> None:
    console = await generate(services, num_answers=2, sampling={"seed": 3})
    assert console.out == "--- 1 of 2 ---\nGood day 🙂\n--- 2 of 2 ---\nGood day 🙂\n"
    assert [stream.params.seed for stream in services.engine.streams] == [3, 4]
    result = (await generate(services, num_answers=3, json=True)).json()
    assert [each["text"] for each in result["choices"]] == ["Good day 🙂"] * 3
    assert (result["text"], result["finish_reason"]) == ("Good day 🙂", "stop")
    assert "choices" not in (await generate(services, json=True)).json()


async def test_a_system_prompt_reaches_the_model(services: FakeModelServices) -> None:
    await generate(services, system="Speak like a pirate.")
    tokenizer = (await services.chat_model()).loaded.tokenizer
    prompt = b"".join(map(tokenizer.token_bytes, services.engine.streams[-1].prompt))
    assert b"pirate" in prompt and b"helpful" not in prompt


async def test_a_control_out_of_range_is_refused_before_the_model_is_loaded(
    services: FakeModelServices,
) -> None:
    with pytest.raises(InvalidParams, match="temperature"):
        await generate(services, sampling={"temperature": 99.0})
    assert services.loaded_model is None


async def test_a_failure_is_its_sentence(services: FakeModelServices) -> None:
    services.engine.script = None
    asking = asyncio.create_task(generate(services, json=True))
    await until(lambda: services.engine.streams)
    services.engine.streams[-1].fail(EngineError("It failed."))
    with pytest.raises(EngineError, match="It failed"):
        await asking


async def test_leaving_ends_the_request(services: FakeModelServices) -> None:
    services.engine.script = None
    asking = asyncio.create_task(generate(services))
    await until(lambda: services.engine.streams)
    asking.cancel()
    await asyncio.wait([asking])
    assert services.engine.streams[-1].is_aborted


@pytest.mark.parametrize("command", ["generate", "doctor"])
async def test_another_model_than_the_apps_is_refused(
    services: FakeModelServices, command: str
) -> None:
    options = Options(command=command, text="Hi", model="/another/model.gguf")
    with pytest.raises(UsageError, match="leave --model out, or quit the app"):
        await carry_out(services, options, Recorder())


async def test_another_draft_model_than_the_apps_is_refused(services: FakeModelServices) -> None:
    options = Options(command="generate", text="Hi", reproducible=False, draft_model="/x.gguf")
    with pytest.raises(UsageError, match="leave --draft-model out, or quit the app"):
        await carry_out(services, options, Recorder())


async def test_it_is_reproducible_unless_that_is_not_wanted(services: FakeModelServices) -> None:
    for is_wanted in (True, False):
        result = (await generate(services, json=True, reproducible=is_wanted)).json()
        assert result["timings"]["is_reproducible"] is is_wanted
        assert services.engine.streams[-1].options.is_reproducible is is_wanted


async def test_nothing_of_it_may_be_kept_on_the_disk(services: FakeModelServices) -> None:
    await generate(services)
    assert services.engine.streams[0].options.belonging == NOBODY


async def test_the_form_of_the_answer_reaches_the_engine(services: FakeModelServices) -> None:
    services.engine.script = "yes"
    console = await generate(services, grammar_kind="choice", grammar='["yes", "no"]')
    guidance = services.engine.streams[-1].guidance
    assert guidance is not None
    assert guidance.grammar.grammar == Grammar(GrammarKind.CHOICE, '["yes", "no"]')
    assert (console.out, console.notes) == ("yes\n", [])


async def test_a_form_that_cannot_be_kept_to_is_refused(services: FakeModelServices) -> None:
    with pytest.raises(GrammarError, match="uniqueItems.*approximate"):
        await generate(services, grammar_kind="json_schema", grammar=UNIQUE)
    assert services.engine.streams == []


@pytest.mark.parametrize("is_json", [False, True])
async def test_an_approximate_answer_that_satisfies_its_schema_is_told_to(
    services: FakeModelServices, is_json: bool
) -> None:
    services.engine.script = "[1, 2]"
    form = {"grammar_kind": "json_schema", "grammar": UNIQUE, "approximate": True}
    console = await generate(services, json=is_json, **form)
    assert len(services.engine.streams) == 1
    if is_json:
        assert console.json()["check"] == {"valid": True, "fault": ""}
        assert "satisfies its schema" in console.json()["notice"]
    else:
        assert console.out == "[1, 2]\n"
        assert "satisfies its schema" in console.notes[0]


async def test_an_approximate_answer_is_tried_again_and_never_passes_for_right(
    services: FakeModelServices,
) -> None:
    services.engine.script = "[1, 1]"
    form = {"grammar_kind": "json_schema", "grammar": UNIQUE, "approximate": True}
    console = await generate(services, json=True, sampling={"temperature": 0.0, "seed": 3}, **form)
    asked = [stream.params for stream in services.engine.streams]
    # Not those of further answers.
    assert [each.seed for each in asked] == [3, 35, 67]
    assert [each.temperature > 0 for each in asked] == [False, True, True]
    result = console.json()
    assert result["text"] == "[1, 1]"
    assert not result["check"]["valid"] and "non-unique" in result["check"]["fault"]
    assert "does not satisfy its schema" in result["notice"]
