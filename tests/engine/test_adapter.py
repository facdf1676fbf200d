"""An adapter and its scale, as they are given."""

from pathlib import Path

import pytest

from engine.adapter import Adapter
from engine.errors import InvalidParams

FILE = Path("pirate.gguf")


@pytest.mark.parametrize("scale", [-4.01, 4.5, float("nan"), float("inf")])
def test_a_scale_out_of_range_is_refused_with_the_range(scale: float) -> None:
    with pytest.raises(InvalidParams, match=rf"must be between -4 and 4, got {scale:g}\."):
        Adapter(FILE, scale)


def test_its_name_says_the_scale_where_it_is_not_one() -> None:
    assert [Adapter(FILE, scale).name for scale in (1.0, 0.8, -1.0)] == [
        "pirate",
        "pirate 0.8",
        "pirate -1",
    ]


def test_a_scale_that_32_bits_take_for_nothing_does_not_act() -> None:
    assert [Adapter(FILE, scale).acts for scale in (0.0, -0.0, 1e-50, 1e-9)] == [
        False,
        False,
        False,
        True,
    ]


def test_a_missing_file_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"12345")
    sizes = [Adapter(tmp_path / name).num_bytes for name in ("a.gguf", "b.gguf")]
    assert sizes == [5, 0]
