"""Four folders, in one place when INGLENOOK_HOME says so."""

import os
import stat
from pathlib import Path

import platformdirs
import pytest

from app.paths import Paths
from engine.errors import HomeError


def test_one_variable_moves_everything(home: Path) -> None:
    paths = Paths.from_environment({"INGLENOOK_HOME": str(home / "näh 🙂")})
    paths.create()
    for folder in (paths.data, paths.cache, paths.models, paths.logs):
        assert folder.parent == home / "näh 🙂"
        assert folder.is_dir()


def test_the_library_of_a_home_reads_nothing_of_the_home(paths: Paths) -> None:
    assert set(paths.own) == {paths.data, paths.cache, paths.models, paths.logs}


def test_what_was_read_of_conversations_lies_where_it_may_be_deleted(paths: Paths) -> None:
    assert paths.kv.parent == paths.cache


def test_without_it_each_system_has_its_places() -> None:
    paths = Paths.from_environment({})
    assert "inglenook" in str(paths.data)
    assert paths.models.parent == paths.data


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """No HOME, and no list of users that knows this one: a service, or a container."""

    def user_data_dir(*_: object, **__: object) -> str:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(platformdirs, "user_data_dir", user_data_dir)
    with pytest.raises(HomeError, match="INGLENOOK_HOME"):
        Paths.from_environment({})


def test_a_relative_or_short_place_becomes_absolute() -> None:
    assert Paths.from_environment({"INGLENOOK_HOME": "here"}).data == Path.cwd() / "here" / "data"
    assert Paths.from_environment({"INGLENOOK_HOME": "~/x"}).data == Path.home() / "x" / "data"
    nobody = Paths.from_environment({"INGLENOOK_HOME": "~no-such-user/x"})
    assert nobody.data == Path.cwd() / "~no-such-user" / "x" / "data"


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_only_this_user_may_look_into_what_is_made(home: Path) -> None:
    root = home / "new" / "inglenook"
    paths = Paths.from_environment({"INGLENOOK_HOME": str(root)})
    paths.create()
    for folder in (root.parent, root, paths.data, paths.cache, paths.models, paths.logs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_a_folder_that_was_there_keeps_its_mode(home: Path) -> None:
    home.chmod(0o755)
    Paths.from_environment({"INGLENOOK_HOME": str(home)}).create()
    assert stat.S_IMODE(home.stat().st_mode) == 0o755


def test_a_file_in_the_way_is_one_sentence(home: Path) -> None:
    (home / "file").write_text("")
    paths = Paths.from_environment({"INGLENOOK_HOME": str(home / "file")})
    with pytest.raises(HomeError, match="cannot be made .* INGLENOOK_HOME"):
        paths.create()


def test_a_folder_that_cannot_be_written_is_one_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(HomeError, match="cannot be written: make it writable"):
        Paths.from_environment({"INGLENOOK_HOME": str(home)}).create()
