"""Models in several files."""

from pathlib import Path

from engine.backends.llama_cpp.split_file import is_later_part, model_name, parts_of

FIRST, SECOND = Path("m/Big-Q8_0-00001-of-00002.gguf"), Path("m/Big-Q8_0-00002-of-00002.gguf")


def test_any_part_names_them_all() -> None:
    assert parts_of(FIRST) == parts_of(SECOND) == [FIRST, SECOND]
    assert [is_later_part(part) for part in (FIRST, SECOND)] == [False, True]
    assert model_name(FIRST) == "Big-Q8_0"


def test_a_model_in_one_file_is_its_only_part() -> None:
    path = Path("m/of-one-00001.gguf")
    assert parts_of(path) == [path]
    assert not is_later_part(path)
    assert model_name(path) == "of-one-00001"
