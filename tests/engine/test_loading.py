"""A model in several files is known by all of them: KV of another one would be wrong words."""

from pathlib import Path

from engine.loading import digest_of_all

FIRST, SECOND = Path("m-00001-of-00002.gguf"), Path("m-00002-of-00002.gguf")


def test_a_change_in_any_file_changes_the_whole() -> None:
    known = {FIRST: b"1" * 32, SECOND: b"2" * 32}
    whole = digest_of_all([FIRST, SECOND], known.get)
    assert whole is not None and len(whole) == 32
    assert digest_of_all([FIRST, SECOND], {**known, SECOND: b"3" * 32}.get) != whole
    assert digest_of_all([SECOND, FIRST], known.get) != whole


def test_one_file_is_known_by_itself() -> None:
    assert digest_of_all([FIRST], {FIRST: b"1" * 32}.get) == b"1" * 32


def test_with_one_unknown_the_whole_is_unknown() -> None:
    assert digest_of_all([FIRST, SECOND], {FIRST: b"1" * 32}.get) is None
