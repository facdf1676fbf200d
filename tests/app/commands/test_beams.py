"""`generate --n-beams`."""

import asyncio
import json

import pytest

from app import cli
from app.commands.carry_out import carry_out
from app.commands.options import Options
from engine.errors import InvalidParams, UsageError
from tests.app.commands.console import Recorder
from tests.fakes_model import FakeModelServices
from tests.waiting import until


async def test_answers_are_written_the_best_first(services: FakeModelServices) -> None:
    services.engine.script = None
    console = Recorder()
    options = Options(
        command="generate", text="Hi", num_beams=2, num_answers=2, sampling={"max_tokens": 1}
    )
    asking = asyncio.create_task(carry_out(services, options, console))
    await until(lambda: services.engine.streams)
    services.engine.streams[-1].look_ahead(("a", -0.25), ("b", -1.5))
    await asking
    assert console.out == "--- 1 of 2, score -0.250 ---\na\n--- 2 of 2, score -1.500 ---\nb\n"


async def test_one_object_tells_the_scores(services: FakeModelServices) -> None:
    services.engine.script = None
    console = Recorder()
    options = Options(
        command="generate", text="Hi", num_beams=2, json=True, sampling={"max_tokens": 1}
    )
    asking = asyncio.create_task(carry_out(services, options, console))
    await until(lambda: services.engine.streams)
    services.engine.streams[-1].look_ahead(("a", -0.25), ("b", -1.5))
    await asking
    result = console.json()
    assert (result["text"], result["score"], result["logprob"]) == ("a", -0.25, -0.25)
    assert result["finish_reason"] == "length"
    assert "choices" not in result
    assert result["timings"]["finish"] == "beams"


@pytest.mark.parametrize("given", [{"temperature": 0.5}, {"seed": 1}, {"mirostat": 2}])
async def test_controls_of_drawing_are_refused(
    services: FakeModelServices, given: dict[str, object]
) -> None:
    options = Options(command="generate", text="Hi", num_beams=2, sampling=given)
    with pytest.raises(UsageError, match="draws nothing"):
        await carry_out(services, options, Recorder())


async def test_more_answers_than_beams_are_refused(services: FakeModelServices) -> None:
    options = Options(command="generate", text="Hi", num_beams=2, num_answers=3)
    with pytest.raises(InvalidParams, match="between 1 and 2 answers"):
        await carry_out(services, options, Recorder())


def test_options_of_beams_need_beams(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["generate", "Hi", "--length-penalty", "2"]) == 2
    assert "need --n-beams" in capsys.readouterr().err
    assert cli.main(["generate", "Hi", "--logprobs", "2"]) == 2
    assert "needs --json" in capsys.readouterr().err


@pytest.mark.model
def test_the_starter_answers_with_the_likeliest_choice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--choice", "yes", "--choice", "no", "--n-beams", "2", "--n", "2", "--json"]
    assert cli.main(["generate", "Is the sky blue?", *arguments]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {each["text"] for each in result["choices"]} == {"yes", "no"}
    scores = [each["score"] for each in result["choices"]]
    assert scores == sorted(scores, reverse=True)
