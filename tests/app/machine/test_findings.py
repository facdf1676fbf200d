"""What was found as JSON: the fields that other programs rely on, and more."""

import json
from dataclasses import replace

from app.machine.check import Check
from tests.fakes_machine import some_findings


def test_other_programs_find_what_they_rely_on() -> None:
    found = json.loads(json.dumps(some_findings().as_json()))
    assert found["looked_at"] == some_findings().looked_at
    assert (found["ok"], found["backend"], found["memory_bandwidth"]) == (False, "llama", 2e10)
    assert set(found["checks"][0]) == {"name", "ok", "message", "remedy"}
    assert found["predictions"][0]["tokens_per_second"] == 50
    assert found["kv"]["formula"].endswith("23,040 bytes") and found["kv"]["num_in_cells"] == 4
    assert found["costs"]["reading"]["watt_hours_per_1000"] == 0.05


def test_what_is_not_known_is_null() -> None:
    bare = replace(
        some_findings(), rates=None, processor=None, plan=None, kv=None, costs=None, roofline=None
    )
    found = bare.as_json()
    assert found["backend"] == "llama"
    for name in ("rates", "processor", "plan", "kv", "costs", "roofline"):
        assert found[name] is None


def test_all_is_well_when_every_check_is() -> None:
    assert replace(some_findings(), checks=[Check("a", True, "well")]).ok
