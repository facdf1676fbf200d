"""`inglenook models quantize`: a new file, a sentence, or one JSON object."""

import json
from pathlib import Path

import pytest

from app.cli import main
from app.commands import quantize as command
from app.commands.quantize import target_of
from app.paths import Paths
from engine.backends.llama_cpp.own_part import own_part
from engine.errors import UsageError
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


@pytest.fixture
def tiny(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INGLENOOK_HOME", str(home))
    return write_tiny_model(home / "tiny.gguf")


def test_a_bare_name_is_a_file_in_the_models_folder(
    tiny: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "quantize", str(tiny), "smaller", "--type", "q8_0"]) == 0
    made = home / "models" / "smaller.gguf"
    assert made.is_file()
    assert capsys.readouterr().out.startswith(f"{made}: ")
    assert main(["models", "list", "--json"]) == 0
    names = [each["name"] for each in json.loads(capsys.readouterr().out)["models"]]
    assert "smaller" in names


def test_json_is_one_object_and_nothing_else(
    tiny: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = home / "new.gguf"
    assert main(["models", "quantize", str(tiny), str(target), "--json"]) == 0
    said = capsys.readouterr()
    result = json.loads(said.out)
    assert said.err == "" and result["type"] == "Q4_K_M"
    assert result["bytes_after"] == target.stat().st_size < result["bytes_before"]


def test_what_is_refused_is_one_sentence_with_its_code(
    tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "quantize", str(tiny), str(tiny)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["models", "quantize", "missing.gguf", "new"]) == 1
    assert "There is no model file" in capsys.readouterr().err


def test_help_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["models", "quantize", "--help"])
    assert "--again" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["models", "--help"])
    assert "quantize" in capsys.readouterr().out


def test_control_c_ends_it_and_leaves_no_file(
    tiny: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = home / "new.gguf"
    own_part(target).touch()

    class Interrupted(command.Future):  # type: ignore[type-arg]
        def result(self, timeout: float | None = None) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "Future", Interrupted)
    monkeypatch.setattr(command.Thread, "start", lambda self: None)
    with pytest.raises(KeyboardInterrupt):
        command.quantize_here(tiny, target, "Q8_0", False)
    assert not list(home.glob("new*"))


def test_a_path_stays_a_path(paths: Paths) -> None:
    assert target_of(paths, "small") == paths.models / "small.gguf"
    assert target_of(paths, "small.gguf") == Path.cwd() / "small.gguf"
    assert target_of(paths, "./small") == Path.cwd() / "small"


@pytest.mark.parametrize("name", ["", "  ", "starter"])
def test_a_name_that_could_not_be_used_is_wrong_use(
    tiny: Path, home: Path, paths: Paths, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="give one|choose another one"):
        target_of(paths, name)
    assert main(["models", "quantize", str(tiny), name]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list((home / "models").iterdir())
