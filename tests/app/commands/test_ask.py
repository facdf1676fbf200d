"""`docs ask`: an answer with its passages in a terminal, from a model that the test writes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.chat.example import Example
from app.commands.arguments import make_parser
from app.commands.carry_out import carry_out
from app.commands.given import options_of
from app.commands.options import Options
from app.documents.library import Library
from app.presets.preset import Preset
from engine.errors import UsageError
from tests.app.commands.console import Recorder
from tests.fakes_documents import FakeReader
from tests.fakes_model import FakeModelServices
from tests.waiting import until

QUESTION = "Where does the river Inn rise?"


@pytest.fixture
async def papers(services: FakeModelServices, home: Path) -> Path:
    services.__dict__["documents"] = Library(services.paths.documents, FakeReader())
    folder = home / "papers"
    folder.mkdir()
    (folder / "inn.txt").write_text("About rivers.\fThe river Inn rises in Switzerland, at Maloja.")
    (folder / "rhine.txt").write_text("The river Rhine is 1,233 kilometres long.")
    await services.documents.prepare()
    await services.documents.add(folder)
    await services.documents.add(folder / "rhine.txt", collection="long")
    await services.documents.settled()
    return folder


async def ask(services: FakeModelServices, text: str, **options: Any) -> Recorder:
    console = Recorder()
    asked = Options(command="docs", action="ask", text=text, **options)
    await carry_out(services, asked, console)
    return console


async def test_the_answer_comes_with_file_page_and_quote(
    services: FakeModelServices, papers: Path
) -> None:
    services.engine.script = "It rises at Maloja [1]. Monks painted it [1]."
    console = await ask(services, QUESTION)
    assert console.out.splitlines() == [
        "It rises at Maloja [1]. Monks painted it.",
        "",
        f"[1] {papers / 'inn.txt'}, page 2",
        "    The river Inn rises in Switzerland, at Maloja.",
    ]
    assert console.notes[0] == "This was not found in the passages: Monks painted it [1]."


async def test_the_quote_is_that_of_a_mark_that_is_shown(
    services: FakeModelServices, papers: Path
) -> None:
    services.engine.script = "Monks painted it [1]. It rises at Maloja [1]."
    console = await ask(services, QUESTION)
    assert console.out.splitlines()[-1] == "    The river Inn rises in Switzerland, at Maloja."


async def test_a_sentence_that_comes_again_is_said_once_not_to_be_found(
    services: FakeModelServices, papers: Path
) -> None:
    services.engine.script = "Monks painted it [1]. Bees came in. Monks painted it [2]. It ends 9."
    console = await ask(services, QUESTION)
    said = [each.rpartition(": ")[2] for each in console.notes if "not found" in each]
    assert said == ["Monks painted it [1].", "It ends 9."]


async def test_a_preset_brings_its_prompt_and_examples(
    services: FakeModelServices, papers: Path
) -> None:
    services.engine.script = "At Maloja."
    services.presets.save(
        Preset(
            name="Pirate",
            sampling={"temperature": 1.5},
            system_prompt="Speak like a pirate.",
            examples=(Example("2+2?", "Vier."),),
        )
    )
    await ask(services, QUESTION, preset="pirate")
    (stream,) = services.engine.streams
    tokenizer = (await services.chat_model()).loaded.tokenizer
    prompt = b"".join(map(tokenizer.token_bytes, stream.prompt))
    assert 0 <= prompt.find(b"pirate") < prompt.find(b"Vier.") < prompt.find(b"Maloja")
    assert stream.params.temperature == 1.5


async def test_json_has_what_other_programs_rely_on(
    services: FakeModelServices, papers: Path
) -> None:
    services.engine.script = "It rises at Maloja [2]."
    said = (await ask(services, QUESTION, json=True)).json()
    assert (said["text"], said["found"]) == ("It rises at Maloja [1].", True)
    (citation,) = said["citations"]
    assert (
        citation.items()
        >= {
            "n": 1,
            "path": str(papers / "inn.txt"),
            "page": 2,
            "quote": "The river Inn rises in Switzerland, at Maloja.",
            "verdict": "corrected",
        }.items()
    )
    assert said["usage"]["completion_tokens"] == len("It rises at Maloja [2].")
    assert said["timings"]["finish"] == "stop" and said["documents"] == 2
    assert said["passages"][0]["n"] == 1


@pytest.mark.parametrize("text", [QUESTION, "Who is the king of France?"])
async def test_wrong_use_is_refused_whether_or_not_something_is_found(
    services: FakeModelServices, papers: Path, text: str
) -> None:
    with pytest.raises(UsageError, match="temperature"):
        await ask(services, text, sampling={"temperature": 99})
    with pytest.raises(UsageError, match="no preset"):
        await ask(services, text, preset="nobody")
    wrong = FakeModelServices(services.paths, services.engine, model="nope")
    wrong.__dict__["documents"] = services.documents
    with pytest.raises(UsageError, match="There is no model 'nope' here"):
        await ask(wrong, text, model="nope")
    assert services.engine.streams == []


async def test_nothing_found_is_an_answer_and_needs_no_model(
    services: FakeModelServices, papers: Path
) -> None:
    said = (await ask(services, "Who painted boats and candles?", json=True)).json()
    assert (said["found"], said["citations"], said["documents"]) == (False, [], 2)
    assert said["text"].startswith("I found nothing about this in your documents.")
    assert said["timings"]["prefilled_tokens"] == said["usage"]["total_tokens"] == 0
    console = await ask(services, "Which river has painters, boats and candles?")
    assert "I looked through 2 documents." in console.out
    assert str(papers) in console.out
    assert services.engine.streams == [] and services.loaded_model is None


async def test_one_collection_or_some_paths_are_asked(
    services: FakeModelServices, papers: Path
) -> None:
    services.engine.script = "1,233 kilometres [1]."
    for options in ({"collection": "long"}, {"files": (str(papers / "rhine.txt"),)}):
        said = (await ask(services, "How long is the river?", json=True, **options)).json()
        assert {Path(each["path"]).name for each in said["passages"]} == {"rhine.txt"}
    with pytest.raises(UsageError, match="no text in the documents"):
        await ask(services, QUESTION, files=("/nowhere",))
    with pytest.raises(UsageError, match="no collection"):
        await ask(services, QUESTION, collection="lakes")


async def test_the_answer_is_kept_to_the_passages(
    services: FakeModelServices, papers: Path
) -> None:
    services.engine.script = "At Maloja."
    await ask(services, QUESTION, sampling={"temperature": 0.0, "max_tokens": 50})
    (stream,) = services.engine.streams
    assert stream.guidance is not None and stream.guidance.is_text
    assert (stream.params.temperature, stream.params.max_tokens) == (0.0, 50)
    assert not stream.options.belonging.is_durable


@pytest.mark.parametrize(
    "given",
    [
        ["docs", "ask", " "],
        ["docs", "ask", "Why?", "a.txt", "--collection", "work"],
    ],
)
def test_wrong_use_is_said(given: list[str]) -> None:
    with pytest.raises(UsageError):
        options_of(make_parser().parse_args(given))


def test_paths_are_absolute_and_controls_are_taken() -> None:
    given = ["docs", "ask", "Why?", "a.txt", "--temperature", "0", "--json"]
    options = options_of(make_parser().parse_args(given))
    assert options.files == (str(Path("a.txt").absolute()),)
    assert options.sampling == {"temperature": 0.0} and options.json


class TestWhole:
    """One file, read from its beginning to its end."""

    async def test_it_is_read_first_and_kept_and_the_answer_names_its_pages(
        self, services: FakeModelServices, papers: Path
    ) -> None:
        services.engine.script = "It rises at Maloja [2]."
        console = await ask(services, QUESTION, files=(str(papers / "inn.txt"),), whole=True)
        assert console.out.splitlines() == [
            "It rises at Maloja [2].",
            "",
            f"[2] {papers / 'inn.txt'}, page 2",
            "    The river Inn rises in Switzerland, at Maloja.",
        ]
        assert console.notes[0].startswith("inn.txt is read whole: ")
        (kept,), (asked,) = services.engine.background, services.engine.streams
        belonging = kept.options.belonging
        assert belonging.owner.startswith("doc:") and belonging.is_durable
        assert asked.prompt[: len(kept.prompt)] == kept.prompt
        assert asked.options.belonging.owner == ""

    async def test_it_tells_programs(self, services: FakeModelServices, papers: Path) -> None:
        services.engine.script = "It rises at Maloja [2]."
        console = await ask(
            services, QUESTION, files=(str(papers / "inn.txt"),), whole=True, json=True
        )
        said = console.json()
        assert said["whole"] is True
        assert [each["n"] for each in said["citations"]] == [2]
        assert [each["n"] for each in said["passages"]] == [2]

    async def test_how_far_it_is_read_is_said_to_who_waits(
        self, services: FakeModelServices, papers: Path
    ) -> None:
        services.engine.script = "It rises at Maloja [2]."
        services.engine.is_busy = True
        console = Recorder()
        files = (str(papers / "inn.txt"),)
        asked = Options(command="docs", action="ask", text=QUESTION, files=files, whole=True)
        asking = asyncio.create_task(carry_out(services, asked, console))
        await until(lambda: bool(services.engine.background))
        (kept,) = services.engine.background
        kept.read(20)
        await until(lambda: bool(console.progressed))
        assert f"page 1 of 2, 20 of {len(kept.prompt):,} tokens" in console.progressed[0]
        kept.end()
        await asking
        assert len(console.progressed) == 1

    async def test_several_files_are_searched_and_that_is_said(
        self, services: FakeModelServices, papers: Path
    ) -> None:
        services.engine.script = "It rises at Maloja [1]."
        console = await ask(services, QUESTION, files=(str(papers),), whole=True)
        assert "Only a single document" in console.notes[0]
        assert "page 2" in console.out and services.engine.background == []

    async def test_what_is_too_long_for_the_model_says_what_it_needs(
        self, services: FakeModelServices, papers: Path
    ) -> None:
        services.engine.script = "It rises at Maloja [1]."
        services.max_request_tokens = services.engine.trained_context = 1500
        file = papers / "inn.txt"
        file.write_text("The river Inn rises in Switzerland, at Maloja. " * 40)
        await services.documents.add(file)
        await services.documents.settled()
        console = await ask(services, QUESTION, files=(str(file),), whole=True)
        assert "so it was searched. It needs a context of " in console.notes[0]
        assert "this model was made for 1,500" in console.notes[0]
