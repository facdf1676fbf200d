"""Figures, short enough to be read at a glance."""

from app.ui.amounts import gigabytes, milliseconds, turns


def test_amounts_are_short() -> None:
    assert [gigabytes(each) for each in (7, 23_040, 188_743_680, 1.9e8, 2.5e9, 24e9)] == [
        "7 bytes",
        "23 kB",
        "189 MB",
        "190 MB",
        "2.5 GB",
        "24 GB",
    ]
    assert [milliseconds(each) for each in (0.4, 95.2, 1234)] == ["0 ms", "95 ms", "1.2 s"]
    assert [turns(each, "oldest") for each in (1, 1200)] == ["oldest turn", "1,200 oldest turns"]
