"""Which model is to answer: what a command names goes before what is saved."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.models.choice import ModelChoice
from app.paths import Paths
from app.settings import Settings
from engine.adapter import Adapter
from engine.errors import ModelNotFound

SAVED = Settings(model="/saved.gguf", draft_model="/small.gguf")


def test_what_is_saved_holds_where_nothing_is_named(paths: Paths) -> None:
    choice = ModelChoice(paths=paths, settings=SAVED)
    assert not choice.is_named
    assert choice.model_path == Path("/saved.gguf")
    assert choice.draft_model_path == Path("/small.gguf")


def test_what_is_named_goes_before_what_is_saved(paths: Paths) -> None:
    choice = ModelChoice(paths=paths, settings=SAVED, model="/a.gguf", draft_model="/b.gguf")
    assert choice.is_named
    assert (choice.model_path, choice.draft_model_path) == (Path("/a.gguf"), Path("/b.gguf"))


def test_without_any_choice_the_starter_answers_alone(paths: Paths, starter: Path) -> None:
    choice = ModelChoice(paths=paths, settings=Settings())
    assert (choice.model_path, choice.draft_model_path) == (starter, None)


def test_without_a_starter_and_a_choice_it_is_said_what_to_do(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.models.local.starter_model", lambda: None)
    with pytest.raises(ModelNotFound, match="not installed: run"):
        ModelChoice(paths=paths, settings=Settings()).model_path  # noqa: B018


def test_only_what_nobody_named_gives_its_place_to_the_starter(paths: Paths, starter: Path) -> None:
    saved = ModelChoice(paths=paths, settings=SAVED)
    assert saved.fallback == starter
    assert replace(saved, model="/a.gguf").fallback is None
    assert replace(saved, adapters=(("/poet.gguf", 1.0),)).fallback is None


def test_another_setting_is_looked_up_anew(paths: Paths) -> None:
    choice = ModelChoice(paths=paths, settings=SAVED)
    assert choice.model_path.name == "saved.gguf"
    other = replace(choice, settings=replace(SAVED, model="/other.gguf"))
    assert other.model_path.name == "other.gguf"
    assert choice.model_path.name == "saved.gguf"


def test_adapters_belong_to_the_model_they_were_saved_for(paths: Paths) -> None:
    saved = Adapter(Path("/pirate.gguf"), 0.5)
    settings = SAVED.with_adapters(Path("/saved.gguf"), [saved])
    assert ModelChoice(paths=paths, settings=settings).used_adapters == (saved,)
    assert ModelChoice(paths=paths, settings=settings, model="/a.gguf").used_adapters == ()
    named = ModelChoice(paths=paths, settings=settings, adapters=(("/poet.gguf", 2.0),))
    assert named.is_named
    assert named.used_adapters == (Adapter(Path("/poet.gguf"), 2.0),)


def test_the_engine_is_told_everything_but_in_safe_mode_the_model_alone(paths: Paths) -> None:
    choice = ModelChoice(paths=paths, settings=SAVED, adapters=(("/poet.gguf", 1.0),))
    usual = choice.config(keeps_kv=True, is_safe=False)
    assert (usual.model_path, usual.draft_model_path) == (Path("/saved.gguf"), Path("/small.gguf"))
    assert usual.kv_folder == paths.kv
    assert [each.path.name for each in usual.adapters] == ["poet.gguf"]
    assert choice.config(keeps_kv=False, is_safe=False).kv_folder is None
    safe = choice.config(keeps_kv=True, is_safe=True)
    assert (safe.model_path, safe.draft_model_path) == (Path("/saved.gguf"), None)
    assert (safe.kv_folder, safe.adapters) == (None, ())
