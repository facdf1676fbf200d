"""Collections of schemas as they are published."""

import json
from pathlib import Path

import pytest

from app.eval.schema_records import Instance, Record, read_records
from engine.errors import UsageError


def test_both_kinds_of_collection_are_read(tmp_path: Path) -> None:
    row = {"id": "a", "subset": "s", "schema": {"type": "null"}}
    row["tests"] = [{"valid": True, "data": None, "description": "d"}]  # type: ignore[assignment]
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    group = {"description": "g", "schema": False, "tests": [{"valid": False, "data": 1}]}
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "not.json").write_text(json.dumps([group]))
    assert read_records(tmp_path) == [
        Record("a", "s", {"type": "null"}, (Instance(True, None),)),
        Record("not 0: g", "not", False, (Instance(False, 1),)),
    ]


@pytest.mark.parametrize("content", [None, "", "[]", "{", "[7]", '[{"description": "x"}]'])
def test_what_is_no_collection_is_one_sentence(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "a.json").write_text(content)
    with pytest.raises(UsageError) as refusal:
        read_records(tmp_path)
    assert "\n" not in str(refusal.value)
