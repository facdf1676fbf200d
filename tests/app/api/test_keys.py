"""The key of /v1: given, kept or made; compared as bytes."""

import os
import stat

import pytest

from app.api.keys import api_key, is_key
from app.paths import Paths
from engine.errors import HomeError


def test_the_environment_decides(paths: Paths) -> None:
    assert api_key(paths, {"INGLENOOK_API_KEY": " mine "}) == "mine"
    assert not paths.api_key.exists()


def test_a_made_key_is_kept(paths: Paths) -> None:
    key = api_key(paths, {})
    assert len(key) > 30
    assert api_key(paths, {"INGLENOOK_API_KEY": " "}) == key


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_the_kept_key_is_for_this_user_only(paths: Paths) -> None:
    paths.api_key.write_text("\n")
    paths.api_key.chmod(0o644)
    assert api_key(paths, {})
    assert stat.S_IMODE(paths.api_key.stat().st_mode) == 0o600


def test_a_key_file_of_nonsense_is_one_sentence(paths: Paths) -> None:
    paths.api_key.write_bytes(b"\xff\xfe")
    with pytest.raises(HomeError, match="cannot be used .*: correct or delete the file, or set"):
        api_key(paths, {})


def test_a_key_that_cannot_be_kept_is_one_sentence(paths: Paths) -> None:
    paths.api_key.with_name("api-key.part").mkdir()
    with pytest.raises(HomeError, match="cannot be used"):
        api_key(paths, {})


@pytest.mark.parametrize("header", ["Bearer secret", "bearer secret", "BEARER  secret "])
def test_the_key_opens(header: str) -> None:
    assert is_key("secret", header)


@pytest.mark.parametrize(
    "header", [None, "", "secret", "Bearer", "Bearer ", "Bearer secre", "Basic secret", "Bearer €"]
)
def test_everything_else_does_not(header: str | None) -> None:
    assert not is_key("secret", header)


def test_a_key_of_any_letters_works() -> None:
    sent = "Bearer schlüssel".encode().decode("latin-1")
    assert is_key("schlüssel", sent)
