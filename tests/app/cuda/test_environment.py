"""Only an environment that was finished is ever started, and only by the version that made it."""

import os
import sys
from pathlib import Path

import pytest

from app.cuda.environment import NOTE, Environment, Made, python_in, sweep_if_alone
from app.version import VERSION
from engine.errors import HomeError, UsageError

MADE = Made(version=VERSION, torch="2.99.0", python="3.11.7", num_bytes=10)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "cuda")


def begun(environment: Environment) -> Path:
    """A new one that has all but its note and its name."""
    new = environment.new_folder()
    python = python_in(new)
    python.parent.mkdir(parents=True)
    python.write_text("a Python")
    return new


def finished(environment: Environment, made: Made = MADE) -> Environment:
    with environment.alone():
        environment.take(begun(environment), made)
    return environment


def test_what_is_not_there_is_no_obstacle_and_is_not_ready(environment: Environment) -> None:
    assert environment.made() is None
    assert environment.obstacle() == ""
    assert not environment.is_ready


def test_a_finished_one_is_started_apart_from_every_other_python(environment: Environment) -> None:
    finished(environment)
    assert environment.is_ready and environment.made() == MADE
    assert environment.command == (str(environment.python), "-I", "-m", "app.launcher")


def test_one_that_was_not_finished_is_none_and_goes(environment: Environment) -> None:
    new = begun(environment)
    assert not environment.is_ready
    sweep_if_alone(environment)
    assert not new.exists()


@pytest.mark.parametrize(
    "note", ["", "{", "[]", '{"version": "1"}', "[" * 100_000], ids=lambda note: note[:20]
)
def test_one_whose_note_cannot_be_read_is_none_and_goes(
    environment: Environment, note: str
) -> None:
    finished(environment)
    (environment.folder / NOTE).write_text(note)
    assert environment.made() is None and not environment.is_ready
    sweep_if_alone(environment)
    assert not environment.folder.exists()


def test_nothing_is_swept_while_somebody_is_at_work(environment: Environment) -> None:
    new = begun(environment)
    with environment.alone():
        sweep_if_alone(Environment(environment.folder))
        assert new.exists()
        with pytest.raises(UsageError, match="at work"), Environment(environment.folder).alone():
            pass


def test_another_version_is_not_started_and_says_so(environment: Environment) -> None:
    finished(environment)
    obstacle = environment.obstacle("9.9.9")
    assert f"belongs to Inglenook {VERSION} and this is 9.9.9" in obstacle
    assert "`inglenook cuda install`" in obstacle


def test_one_whose_python_is_gone_is_not_started(environment: Environment) -> None:
    finished(environment).python.unlink()
    assert "needs Python 3.11.7, which is gone" in environment.obstacle()
    assert not environment.is_ready


def test_a_new_one_takes_the_place_of_the_old_one(environment: Environment) -> None:
    finished(environment)
    (environment.folder / "old").touch()
    newer = Made(version=VERSION, torch="3", python="3.13.0", num_bytes=20)
    finished(environment, newer)
    assert environment.made() == newer
    assert [each.name for each in environment.folder.parent.iterdir() if each.is_dir()] == ["cuda"]
    assert not (environment.folder / "old").exists()


def test_removing_leaves_nothing(environment: Environment) -> None:
    finished(environment)
    with environment.alone():
        assert environment.remove()
    assert not environment.folder.exists() and environment.leavings() == []


def test_the_one_that_runs_us_is_only_not_started_again(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished(environment)
    monkeypatch.setattr(sys, "prefix", str(environment.folder))
    with environment.alone():
        assert not environment.remove()
    assert environment.python.exists() and environment.made() is None
    monkeypatch.undo()
    sweep_if_alone(environment)
    assert not environment.folder.exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="this user may write anywhere")
def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(HomeError, match="make room"):
        Environment(tmp_path / "cuda").new_folder()
