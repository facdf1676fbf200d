"""`generate --image` and `--audio` with tiny models that see and hear."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.commands.arguments import make_parser
from app.commands.carry_out import carry_out
from app.commands.given import options_of
from app.commands.options import Options
from app.paths import Paths
from app.services import Services
from engine.errors import ModelNotFound, UsageError
from tests.app.commands.console import Recorder
from tests.app.media.test_reading import recorded
from tests.engine.backends.llama_cpp.tiny_mmproj import write_tiny_mmproj
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model

PLAIN = ("--json", "--max-tokens", "4", "--temperature", "0")


@pytest.fixture
async def services(paths: Paths, tmp_path: Path) -> AsyncIterator[Services]:
    write_tiny_model(tmp_path / "tiny.gguf")
    write_tiny_mmproj(tmp_path / "mmproj-tiny.gguf", "mlp")
    made = Services(paths, str(tmp_path / "tiny.gguf"))
    yield made
    await made.close()


@pytest.fixture
def red(tmp_path: Path) -> str:
    path = tmp_path / "red.png"
    Image.new("RGB", (60, 40), "red").save(path)
    return str(path)


async def generate(services: Services, *given: str) -> dict[str, Any]:
    parsed = make_parser().parse_args(["generate", *given, *PLAIN])
    options = Options.from_json(json.loads(json.dumps(vars_of(options_of(parsed)))))
    console = Recorder()
    await carry_out(services, options, console)
    return dict(console.json())


def vars_of(options: Options) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(options)


async def test_an_answer_about_a_picture(services: Services, red: str) -> None:
    alone = await generate(services, "What is this?")
    seen = await generate(services, "What is this?", "--image", red)
    twice = await generate(services, "What is this?", "--image", red, "--image", red)
    tokens = [each["usage"]["prompt_tokens"] for each in (alone, seen, twice)]
    # The text beside it may be divided in another way.
    assert 64 <= tokens[1] - tokens[0] < 70 and tokens[2] - tokens[1] == 64
    again = await generate(services, "What is this?", "--image", red)
    assert again["text"] == seen["text"]
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] >= 64


async def test_a_beam_search_about_a_picture(services: Services, red: str) -> None:
    parsed = ["generate", "What is this?", "--image", red, "--n-beams", "2", "--max-tokens", "4"]
    console = Recorder()
    options = options_of(make_parser().parse_args([*parsed, "--json"]))
    await carry_out(services, options, console)
    assert console.json()["timings"]["finish"] == "beams"


async def test_what_cannot_be_read_is_said_in_one_sentence(
    services: Services, red: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"gone\.png cannot be read"):
        await generate(services, "Hm?", "--image", str(tmp_path / "gone.png"))
    (tmp_path / "notes.png").write_text("no picture")
    with pytest.raises(UsageError, match="notes.png cannot be used, because it is no PNG"):
        await generate(services, "Hm?", "--image", str(tmp_path / "notes.png"))
    with pytest.raises(UsageError, match="tiny cannot read sounds"):
        await generate(services, "Hm?", "--audio", red)


async def test_an_answer_about_a_sound(paths: Paths, tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    ear = write_tiny_mmproj(tmp_path / "ear.gguf", "ultravox")
    talk = tmp_path / "talk.wav"
    talk.write_bytes(recorded(44_100, seconds=1.5, channels=2))
    services = Services(paths, str(model), mmproj=str(ear))
    heard = await generate(services, "What is said?", "--audio", str(talk), "--mmproj", str(ear))
    assert heard["usage"]["prompt_tokens"] > 187
    with pytest.raises(UsageError, match="another mmproj file"):
        await generate(services, "Hm?", "--mmproj", str(tmp_path / "other.gguf"))
    await services.close()


async def test_a_part_that_is_not_there_is_named(paths: Paths, tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    services = Services(paths, str(model), mmproj=str(tmp_path / "gone.gguf"))
    with pytest.raises(ModelNotFound, match="no mmproj file at"):
        await generate(services, "Hm?")
    await services.close()
