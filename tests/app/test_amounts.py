"""Figures, short enough to be read at a glance."""

import pytest

from app.amounts import bytes_in_words, counted, milliseconds, turns


def test_amounts_are_short() -> None:
    assert [milliseconds(each) for each in (0.4, 95.2, 1234)] == ["0 ms", "95 ms", "1.2 s"]
    assert [turns(each, "oldest") for each in (1, 1200)] == ["oldest turn", "1,200 oldest turns"]


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (23_040, "23 kB"),
        (999_999, "1 MB"),
        (2_304_000, "2.3 MB"),
        (9_960_000, "10 MB"),
        (99_600_000, "100 MB"),
        (188_743_680, "189 MB"),
        (1.96e9, "2 GB"),
        (2.5e9, "2.5 GB"),
        (24e9, "24 GB"),
        (1.5e12, "1.5 TB"),
    ],
)
def test_bytes_are_said_in_decimal_units_and_as_short_as_can_be(
    num_bytes: float, words: str
) -> None:
    assert bytes_in_words(num_bytes) == words


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 pieces"), (1, "1 piece"), (1200, "1,200 pieces")]
)
def test_one_alone_is_counted_in_the_singular(number: int, words: str) -> None:
    assert counted(number, "piece") == words
