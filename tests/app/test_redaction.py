"""Names, places and keys are taken out of a text, and nothing else."""

import getpass
from pathlib import Path

import pytest

from app.paths import Paths
from app.redaction import redact, secrets_of


def test_a_name_is_removed_as_a_word_and_a_place_anywhere() -> None:
    secrets = {"/home/anna": "HOME", "anna": "USER"}
    text = "Anna wrote to /home/anna/x and C:\\Users\\anna; savannah is a place"
    said = "<USER> wrote to <HOME>/x and C:\\Users\\<USER>; savannah is a place"
    assert redact(text, secrets) == said


def test_keys_of_any_program_are_removed() -> None:
    text = "Authorization: Bearer abc.def sk-1234567890abc 0123456789abcdef0123456789abcdef"
    assert redact(text, {}) == "Authorization: <KEY> <KEY> <KEY>"


def test_a_folder_goes_before_the_one_that_it_lies_in(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ann_lee")
    monkeypatch.setenv("INGLENOOK_API_KEY", "given-key")
    monkeypatch.setenv("HOME", str(paths.data.parent))
    monkeypatch.setenv("USERPROFILE", str(paths.data.parent))
    paths.api_key.write_text("kept-key\n")
    told = f"{paths.data}/x {paths.cache} {paths.data.parent}/y ann_lee annual given-key kept-key"
    secrets = secrets_of(paths)
    assert redact(told, secrets) == "<DATA>/x <CACHE> <HOME>/y <USER> annual <KEY> <KEY>"


def test_a_user_without_a_name_is_no_fault(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert "USER" not in secrets_of(paths).values()


def test_nothing_is_no_secret(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INGLENOOK_API_KEY", raising=False)
    paths.api_key.unlink(missing_ok=True)
    assert "" not in secrets_of(paths) and Path("/") not in map(Path, secrets_of(paths))


def test_the_folder_of_the_model_is_a_secret_and_its_name_is_not(paths: Paths) -> None:
    secrets = secrets_of(paths, Path("/media/private things/a model.gguf"))
    told = redact("There is no model file at /media/private things/a model.gguf", secrets)
    assert told == "There is no model file at <FOLDER OF THE MODEL>/a model.gguf"
    assert secrets_of(paths, paths.models / "a.gguf")[str(paths.models)] == "MODELS"
