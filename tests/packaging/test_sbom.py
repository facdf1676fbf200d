"""The list of parts: valid CycloneDX, with everything in it."""

import json
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import jsonschema
from components import Component
from referencing import Registry, Resource
from sbom import sbom

PARTS = [
    Component(
        name="numpy",
        version="2.4.6",
        licence="BSD-3-Clause AND 0BSD AND MIT",
        purl="pkg:pypi/numpy@2.4.6",
        role="Python library",
    ),
    Component(
        name="libgomp1",
        version="12.2.0-14",
        licence="GPL-3.0-or-later WITH GCC-exception-3.1",
        purl="pkg:deb/debian/libgomp1@12.2.0-14",
        role="system library",
    ),
    Component(
        name="SmolLM2",
        version="0.1.2",
        licence="Apache-2.0",
        purl="pkg:huggingface/HuggingFaceTB/SmolLM2-135M-Instruct",
        role="model",
    ),
    Component(
        name="click-default-group",
        version="1.2.4",
        licence="LicenseRef-Public-Domain",
        purl="pkg:pypi/click-default-group@1.2.4",
        role="Python library",
    ),
]
BASE = "http://cyclonedx.org/schema"
MADE = datetime(2026, 11, 30, tzinfo=UTC)


def schema(name: str) -> Any:
    return json.loads((files("cyclonedx.schema") / "_res" / name).read_text(encoding="utf-8"))


def test_it_satisfies_the_schema_of_cyclonedx() -> None:
    others = ("spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json")
    registry: Registry[Any] = Registry().with_resources(
        [(f"{BASE}/{name}", Resource.from_contents(schema(name))) for name in others]
    )
    validator = jsonschema.Draft7Validator(
        schema("bom-1.6.SNAPSHOT.schema.json"), registry=registry
    )
    bom = json.loads(sbom(PARTS, "0.1.0", MADE))
    assert [error.message for error in validator.iter_errors(bom)] == []
    bom["components"][0]["type"] = "pebble"
    assert list(validator.iter_errors(bom))


def test_every_part_stands_in_it_with_version_licence_and_address() -> None:
    bom = json.loads(sbom(PARTS, "0.1.0", MADE))
    assert bom["metadata"]["component"]["version"] == "0.1.0"
    assert {(each["name"], each["version"], each["purl"]) for each in bom["components"]} == {
        (part.name, part.version, part.purl) for part in PARTS
    }
    assert all(each["licenses"] for each in bom["components"])


def test_the_same_parts_give_the_same_text() -> None:
    assert sbom(PARTS, "0.1.0", MADE) == sbom(PARTS[::-1], "0.1.0", MADE)
