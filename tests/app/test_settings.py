"""Saved choices: written whole, read with care, never replaced silently."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from app.chat.example import Example
from app.settings import Settings, load_settings, save_settings
from engine.adapter import Adapter
from engine.errors import HomeError

CHOSEN = Settings(
    model="/models/größe 🙂.gguf",
    draft_model="smaller",
    context_tokens=4096,
    threads=2,
    max_batch_tokens=256,
    kv_type="q8_0",
    kv_ram_bytes=10**9,
    kv_disk_bytes=0,
    default_system_prompt="Sei kurz.",
    default_sampling={"temperature": 0.2, "stop": ["\n"]},
    default_examples=(Example("2+2?", "Vier."),),
    reproducible=True,
    show_likelihoods=True,
    automatic_titles=False,
    embedder="/models/e5.gguf",
    embedder_query_prefix="query: ",
    embedder_passage_prefix="",
    embedder_languages=("de", "en"),
)


def test_what_is_saved_is_read_again(home: Path) -> None:
    save_settings(home / "settings.json", CHOSEN)
    assert load_settings(home / "settings.json") == CHOSEN
    assert load_settings(home / "settings.json").sampling.stop == ("\n",)
    assert [each.name for each in home.iterdir()] == ["settings.json"]


def test_without_a_file_there_are_defaults(home: Path) -> None:
    assert load_settings(home / "settings.json") == Settings()


def test_the_file_reads_the_same_in_every_encoding(home: Path) -> None:
    save_settings(home / "settings.json", CHOSEN)
    assert (home / "settings.json").read_bytes().isascii()


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_the_file_is_for_this_user_only(home: Path) -> None:
    save_settings(home / "settings.json", CHOSEN)
    assert stat.S_IMODE((home / "settings.json").stat().st_mode) == 0o600


def test_a_newer_versions_choices_do_no_harm(home: Path) -> None:
    (home / "settings.json").write_text('{"model": "x.gguf", "theme": "sepia"}')
    assert load_settings(home / "settings.json") == Settings(model="x.gguf")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        *(
            json.dumps(values).encode()
            for values in (
                {"reproducible": 1},
                {"automatic_titles": "no"},
                {"model": 5},
                {"draft_model": 5},
                {"context_tokens": "many"},
                {"context_tokens": True},
                {"threads": 1.5},
                {"max_batch_tokens": None},
                {"kv_type": 8},
                {"kv_ram_bytes": "all"},
                {"kv_disk_bytes": None},
                {"default_system_prompt": None},
                {"default_sampling": []},
                {"default_sampling": {"temperature": "hot"}},
                {"default_sampling": {"temperature": 99}},
                {"default_sampling": {"no_such_control": 1}},
                {"default_examples": [{"user": "a"}]},
                {"default_examples": "a"},
                {"show_likelihoods": 1},
                {"model": "a\0b.gguf"},
                {"draft_model": "a\0"},
                {"model": "\ud800.gguf"},
                {"by_model": {"/m\0.gguf": {"threads": 1}}},
                {"by_model": {"/m.gguf": {"adapters": [{"file": "/a\0", "scale": 1}]}}},
                {"by_model": {"/m.gguf": {"adapters": [{"file": "/a", "scale": 10**400}]}}},
                {"by_model": {"/m.gguf": {"context_tokens": 10**20}}},
                {"unload_after_minutes": 0},
                {"unload_after_minutes": -5},
                {"unload_after_minutes": 10_001},
                {"unload_after_minutes": 10**400},
                {"context_tokens": 10**20},
                {"context_tokens": 2**31},
                {"threads": 10**20},
                {"max_batch_tokens": 10**400},
                {"kv_ram_bytes": 10**20},
            )
        ),
    ],
    ids=lambda content: content[:60].decode("latin-1"),
)
def test_a_damaged_file_is_one_sentence_and_stays(home: Path, content: bytes) -> None:
    file = home / "settings.json"
    file.write_bytes(content)
    with pytest.raises(HomeError, match="are damaged .*: correct the file, or delete it") as raised:
        load_settings(file)
    assert "\n" not in str(raised.value)
    assert file.read_bytes() == content


def test_a_failed_save_keeps_the_old_choices(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "settings.json"
    save_settings(file, CHOSEN)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HomeError, match="could not be saved .No space left"):
        save_settings(file, Settings())
    assert load_settings(file) == CHOSEN


def test_one_model_may_be_loaded_with_choices_of_its_own(home: Path) -> None:
    own = {"/m.gguf": {"context_tokens": 2048, "kv_type": "q8_0"}}
    save_settings(home / "settings.json", Settings(context_tokens=4096, threads=3, by_model=own))
    kept = load_settings(home / "settings.json")
    config, other = kept.engine_config(Path("/m.gguf")), kept.engine_config(Path("/other.gguf"))
    assert (config.context_tokens, config.kv_type, config.threads) == (2048, "q8_0", 3)
    assert (other.context_tokens, other.kv_type) == (4096, "auto")


@pytest.mark.parametrize(
    "own",
    [
        '{"/m": {"adapters": 7}}',
        '{"/m": {"adapters": ["a.gguf"]}}',
        '{"/m": {"adapters": [{"file": "a.gguf", "scale": 9}]}}',
        '{"/m": 7}',
        '{"/m": {"threads": "x"}}',
        '{"/m": {"heat": 1}}',
        "[]",
    ],
)
def test_choices_of_one_model_that_make_no_sense_are_damage(home: Path, own: str) -> None:
    (home / "settings.json").write_text(f'{{"by_model": {own}}}')
    with pytest.raises(HomeError, match="are damaged"):
        load_settings(home / "settings.json")


def test_a_model_keeps_its_adapters_and_others_have_none(home: Path) -> None:
    own = {"/m.gguf": {"adapters": [{"file": "/a.gguf", "scale": 0.5}]}}
    save_settings(home / "settings.json", Settings(by_model=own))
    settings = load_settings(home / "settings.json")
    pirate = Adapter(Path("/a.gguf"), 0.5)
    assert settings.engine_config(Path("/m.gguf")).adapters == (pirate,)
    assert settings.engine_config(Path("/other.gguf")).adapters == ()
    named = (Adapter(Path("/b.gguf")),)
    assert settings.engine_config(Path("/m.gguf"), adapters=named).adapters == named
