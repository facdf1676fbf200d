"""`docs sum-up`: a summary of one file in a terminal, from a model that the test writes."""

from pathlib import Path

import pytest

from app.commands.arguments import make_parser
from app.commands.carry_out import carry_out
from app.commands.given import options_of
from app.commands.options import Options
from engine.errors import UsageError
from tests.app.commands.console import Recorder
from tests.app.commands.test_ask import papers
from tests.fakes_model import FakeModelServices

__all__ = ["papers"]


async def sum_up(services: FakeModelServices, file: Path, *, json: bool = False) -> Recorder:
    console = Recorder()
    asked = Options(command="docs", action="sum-up", files=(str(file),), json=json)
    await carry_out(services, asked, console)
    return console


async def test_each_section_is_written_with_its_pages(
    services: FakeModelServices, papers: Path
) -> None:
    services.engine.script = "About rivers."
    console = await sum_up(services, papers / "inn.txt")
    assert console.out == "Pages 1 to 2. About rivers.\n\n"
    assert console.notes == ["Summing up inn.txt: section 1 of 1."]
    (stream,) = services.engine.streams
    assert stream.options.belonging.owner == ""


async def test_it_tells_programs(services: FakeModelServices, papers: Path) -> None:
    services.engine.script = "About rivers."
    said = (await sum_up(services, papers / "inn.txt", json=True)).json()
    assert said["sections"] == [{"page": 1, "page_to": 2, "text": "About rivers."}]
    assert said["text"] == "" and said["model"]
    (stream,) = services.engine.streams
    assert said["usage"]["prompt_tokens"] == len(stream.prompt)
    assert said["timings"]["completion_tokens"] == len("About rivers.")


async def test_several_files_or_none_are_refused(services: FakeModelServices, papers: Path) -> None:
    for file in (papers, papers / "nothing.txt"):
        with pytest.raises(UsageError, match="One file is summed up at a time"):
            await sum_up(services, file)
    assert services.engine.streams == []


def test_it_is_a_command() -> None:
    options = options_of(make_parser().parse_args(["docs", "sum-up", "a.txt", "--json"]))
    assert options.action == "sum-up" and options.files == (str(Path("a.txt").absolute()),)
