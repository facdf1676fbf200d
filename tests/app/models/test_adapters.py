"""Adapters as they are written on a command line and kept in the settings."""

from pathlib import Path

import pytest

from app.models.adapters import adapters_as_json, adapters_from_json, divided
from engine.adapter import Adapter
from engine.errors import InvalidParams, UsageError


@pytest.mark.parametrize(
    ("text", "file", "scale"),
    [
        ("pirate.gguf", "pirate.gguf", 1.0),
        ("pirate.gguf:0.8", "pirate.gguf", 0.8),
        ("/a:b/pirate:-1", "/a:b/pirate", -1.0),
        ("C:\\lora\\pirate.gguf", "C:\\lora\\pirate.gguf", 1.0),
        ("C:\\lora\\pirate.gguf:.5", "C:\\lora\\pirate.gguf", 0.5),
        ("qwen:pirate", "qwen:pirate", 1.0),
    ],
)
def test_the_scale_stands_behind_the_last_colon(text: str, file: str, scale: float) -> None:
    assert divided(text) == (file, scale)


def test_a_file_whose_name_ends_like_a_scale_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "pirate:2").write_bytes(b"")
    assert divided(f"{tmp_path}/pirate:2") == (f"{tmp_path}/pirate:2", 1.0)


@pytest.mark.parametrize("text", ["a.gguf:5", "a.gguf:nan", ":0.5", ""])
def test_no_file_and_no_possible_scale_are_wrong_use(text: str) -> None:
    with pytest.raises(UsageError):
        divided(text)


def test_what_is_kept_is_read_again() -> None:
    adapters = (Adapter(Path("/a.gguf"), 0.5), Adapter(Path("/b.gguf")))
    assert adapters_from_json(adapters_as_json(adapters)) == adapters
    with pytest.raises(InvalidParams, match="between -4 and 4"):
        adapters_from_json([{"file": "/a.gguf", "scale": 40}])
    for wrong in (
        7,
        ["a"],
        [{"file": "a"}],
        [{"file": 1, "scale": 1}],
        [{"file": "a", "scale": True}],
    ):
        with pytest.raises(ValueError):
            adapters_from_json(wrong)
