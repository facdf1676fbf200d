"""The evaluation tells what is right from what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from app import cli
from app.eval.guided import Tally, evaluate
from app.eval.schema_records import Instance, Record
from tests.engine.guided.forms import BYTES

UNIQUE = {"type": "array", "uniqueItems": True}


def tally_of(
    schema: Any, *instances: Instance, is_approximate: bool = False, walks: int = 0
) -> Tally:
    tally = Tally()
    evaluate(Record("x", "s", schema, instances), BYTES, tally, is_approximate, walks)
    return tally


def test_what_is_enforced_gives_no_false_answer() -> None:
    tally = tally_of({"type": "integer"}, Instance(True, 7), Instance(False, "7"), walks=5)
    assert (tally.num_valid, tally.num_invalid, tally.num_walks) == (1, 1, 5)
    assert not (tally.false_accepts or tally.false_rejects or tally.wrong_walks)
    assert len(tally.mask_us) >= 2 and len(tally.compile_ms) == 1


def test_a_false_accept_and_a_false_reject_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.eval.guided.accepts", lambda form, text, mask_us: text != "7")
    monkeypatch.setattr("app.eval.guided.KeyOrders.accept", lambda orders, value: False)
    tally = tally_of({"type": "integer"}, Instance(True, 7), Instance(False, "7"))
    assert (len(tally.false_accepts), len(tally.false_rejects)) == (1, 1)


def test_a_label_that_the_validator_disputes_is_listed_apart() -> None:
    tally = tally_of({"type": "integer"}, Instance(False, 7))
    assert not tally.false_accepts and len(tally.disputed) == 1


def test_a_refusal_is_counted_and_what_approximate_lets_through_is_checked() -> None:
    assert len(tally_of(UNIQUE, Instance(False, [1, 1])).refused) == 1
    tally = tally_of(UNIQUE, Instance(False, [1, 1]), Instance(True, [1]), is_approximate=True)
    assert not (tally.refused or tally.false_accepts or tally.false_rejects)


@pytest.mark.model
def test_the_last_line_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = {"description": "g", "schema": UNIQUE, "tests": [{"valid": True, "data": []}]}
    (tmp_path / "a.json").write_text(json.dumps([group]))
    assert cli.main(["eval", "guided", "--data", str(tmp_path)]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["eval"], report["schemas"], report["refused"]) == ("guided", 1, 1)
    assert {"false_accepts", "false_rejects", "compile_ms_p95", "mask_us_p99"} <= report.keys()
