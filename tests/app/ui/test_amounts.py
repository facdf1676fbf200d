"""Figures, short enough to be read at a glance."""

from app.ui.amounts import milliseconds, turns


def test_amounts_are_short() -> None:
    assert [milliseconds(each) for each in (0.4, 95.2, 1234)] == ["0 ms", "95 ms", "1.2 s"]
    assert [turns(each, "oldest") for each in (1, 1200)] == ["oldest turn", "1,200 oldest turns"]
