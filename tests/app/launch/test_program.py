"""Which program is started: the one for the card, when it is whole, of this version and wanted."""

from pathlib import Path

import pytest

from app.cuda.environment import Environment, Made, python_in
from app.launch.child import End
from app.launch.link import Doing
from app.launch.program import choose, failed_start, failure_words
from app.models.starter import PLACE, starter_model
from app.version import VERSION

OWN = ("inglenook",)


def environment(folder: Path, version: str = VERSION) -> Environment:
    made = Environment(folder / "cuda")
    new = made.new_folder()
    python_in(new).parent.mkdir()
    python_in(new).touch()
    with made.alone():
        made.take(new, Made(version=version, torch="2", python="3.11.7", num_bytes=1))
    return made


def test_without_an_installation_our_own_is_started_and_nothing_is_said(tmp_path: Path) -> None:
    program = choose(Environment(tmp_path / "cuda"), OWN, is_safe=False, failure="")
    assert (program.command, program.is_for_card, program.note) == (OWN, False, "")


def test_an_installation_is_started_instead_and_told_where_the_starter_is(
    tmp_path: Path, starter: Path
) -> None:
    made = environment(tmp_path)
    program = choose(made, OWN, is_safe=False, failure="")
    assert program.command == made.command and program.is_for_card and not program.note
    assert program.environment == {PLACE: str(starter)}


def test_safe_mode_never_uses_it(tmp_path: Path) -> None:
    program = choose(environment(tmp_path), OWN, is_safe=True, failure="")
    assert program.command == OWN and program.note == ""


@pytest.mark.parametrize(("version", "failure"), [("9.9.9", ""), (VERSION, "It crashed.")])
def test_one_that_is_stale_or_has_failed_is_left_alone_and_that_is_said(
    tmp_path: Path, version: str, failure: str
) -> None:
    program = choose(environment(tmp_path, version), OWN, is_safe=False, failure=failure)
    assert program.command == OWN and not program.is_for_card
    assert program.note == failure or "belongs to Inglenook 9.9.9" in program.note


LOADING = Doing(model="Qwen", is_loading=True)
WRITING = Doing(model="Qwen", page=True, answering="writing")


@pytest.mark.parametrize(
    ("end", "is_ready", "is_failure"),
    [
        (End(code=1, log="ImportError: no"), False, True),
        (End(code=-11), False, True),
        (End(code=-11, doing=LOADING), True, True),
        (End(code=-6, doing=WRITING, log="CUDA error: out of memory"), True, True),
        (End(code=-11, doing=WRITING), True, False),
        (End(code=0), False, False),
        (End(code=-15), False, False),
        (End(code=1, failed="The history is damaged: put a backup in its place."), False, False),
    ],
)
def test_only_what_the_installation_may_be_blamed_for_is_its_failure(
    end: End, is_ready: bool, is_failure: bool
) -> None:
    assert (failed_start(end, is_ready, "2026-01-01 12:00:00") is not None) == is_failure


def test_the_sentence_names_the_cause_and_the_remedy() -> None:
    words = failure_words("it crashed")
    assert "(it crashed)" in words and "`inglenook cuda install` makes it anew" in words


def test_an_app_without_a_starter_of_its_own_takes_the_one_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert starter_model() is None
    monkeypatch.setenv(PLACE, str(tmp_path / "gone.gguf"))
    assert starter_model() is None
    (tmp_path / "starter.gguf").touch()
    monkeypatch.setenv(PLACE, str(tmp_path / "starter.gguf"))
    assert starter_model() == tmp_path / "starter.gguf"
