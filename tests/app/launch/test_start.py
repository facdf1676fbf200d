"""How the app is started: what was named once holds for every start but one with another model."""

import pytest

from app.launch.start import Options, Start
from app.launcher import launch
from app.paths import Paths

NAMED = Options(model="/m.gguf", draft_model="/d.gguf", adapters=("/a.gguf:0.5", "b"), mmproj="/p")
EXTRAS = ("--draft-model", "/d.gguf", "--lora", "/a.gguf:0.5", "--lora", "b", "--mmproj", "/p")


def test_nothing_is_named_that_nobody_named() -> None:
    assert Options().arguments(Start()) == ("run", "--launched", "--no-open")


def test_what_was_named_is_named_to_the_app_also_after_a_crash() -> None:
    usual = ("run", "--launched", "--no-open", "--model", "/m.gguf", *EXTRAS)
    assert NAMED.arguments(Start()) == usual
    assert NAMED.arguments(Start(crash="It ended.")) == usual
    assert NAMED.arguments(Start(is_safe=True)) == (*usual, "--safe")


def test_what_was_named_for_one_model_goes_with_it() -> None:
    start = Start(is_safe=True, model="starter")
    assert NAMED.arguments(start)[3:] == ("--model", "starter", "--safe")


def test_an_adapter_that_makes_no_sense_is_told_before_anything_starts(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("app.launcher.show_or_be_first", lambda *_: pytest.fail("it started"))
    assert launch(["--lora", ":1"]) == 1
    assert "FILE or FILE:0.8" in capsys.readouterr().err
