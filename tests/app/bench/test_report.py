"""What a benchmark prints."""

import json

from app.bench.report import Report, bars, table

ROWS = [
    {"measure": "decode", "ours": 118.25, "passed": True},
    {"measure": "end to end", "ours": 1.5, "passed": False},
]


def test_the_last_line_is_one_json_object() -> None:
    report = Report("decode", {"cores": 2}, ROWS, ("measure", "ours"), ("measure", "ours"), ["a"])
    last = json.loads(report.text().splitlines()[-1])
    assert last == {"bench": "decode", "machine": {"cores": 2}, "rows": ROWS}


def test_words_stand_left_and_numbers_right() -> None:
    lines = table(ROWS, ("measure", "ours", "passed")).splitlines()
    assert lines[0] == "measure     ours  passed"
    assert lines[2] == "decode       118  yes"
    assert lines[3] == "end to end   1.5  NO"


def test_a_field_that_a_row_lacks_is_left_empty() -> None:
    assert table([{"measure": "decode"}], ("measure", "ours")).splitlines()[-1] == "decode"


def test_the_longest_bar_fills_the_picture() -> None:
    lines = bars([{"name": "a", "s": 2.0}, {"name": "bb", "s": 1.0}], "name", "s").splitlines()
    assert lines == ["a  " + "#" * 40 + " 2", "bb " + "#" * 20 + " 1"]
