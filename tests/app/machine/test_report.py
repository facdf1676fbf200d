"""The report that can be sent to others."""

import getpass
from pathlib import Path

import pytest

from app.machine.check import Check
from app.machine.report import report_text, secrets_of, without
from app.paths import Paths
from tests.fakes_machine import some_findings


def test_longer_secrets_go_first_and_words_only_as_a_whole() -> None:
    secrets = {"/home/ann": "~", "/home/ann/data": "[data]", "ann": "[user]"}
    text = "/home/ann/data/x /home/ann/y ann's annual"
    assert without(secrets, text) == "[data]/x ~/y [user]'s annual"


def test_an_empty_secret_changes_nothing() -> None:
    assert without({"": "[key]"}, "a b") == "a b"


def test_folders_name_and_key_are_secrets(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ann")
    monkeypatch.setenv("INGLENOOK_API_KEY", "given-key")
    paths.api_key.write_text("kept-key\n")
    text = without(
        secrets_of(paths), f"{paths.data} {paths.cache} ann given-key kept-key {Path.home()}/x"
    )
    assert text == "[data] [cache] [user] [key] [key] ~/x"


def test_the_folder_of_the_model_is_a_secret_and_its_name_is_not(paths: Paths) -> None:
    secrets = secrets_of(paths, Path("/media/private things/a model.gguf"))
    text = without(secrets, "There is no model file at /media/private things/a model.gguf")
    assert text == "There is no model file at [folder of the model]/a model.gguf"
    assert secrets_of(paths, paths.models / "a.gguf")[str(paths.models)] == "[models]"


def test_a_user_without_a_name_is_no_fault(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert "~" in secrets_of(paths).values()


def test_checks_with_their_remedies_and_the_self_test_are_in_it() -> None:
    trials = [Check("remember", False, "it forgot", "send this")]
    text = report_text(some_findings(), {}, trials)
    assert "NOT  cache" in text and "-> run `inglenook doctor --repair`" in text
    assert "Self-test" in text and "NOT  remember" in text
    assert "Self-test" not in report_text(some_findings(), {})
