"""Schemas with valid and invalid instances, as two public collections write them.

JSONSchemaBench: a JSON object in each line of `*.jsonl`. JSON-Schema-Test-Suite: a list of groups
in each `*.json`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import UsageError


@dataclass(frozen=True, slots=True)
class Instance:
    is_valid: bool
    data: Any


@dataclass(frozen=True, slots=True)
class Record:
    """`subset`: what it is counted under."""

    name: str
    subset: str
    schema: Any
    instances: tuple[Instance, ...]

    @property
    def source(self) -> str:
        return json.dumps(self.schema, ensure_ascii=False)


def read_records(path: Path) -> list[Record]:
    """All of a file or a folder. Raises UsageError when there are none."""
    files = sorted(path.rglob("*.json*")) if path.is_dir() else [path]
    try:
        records = [record for file in files for record in _records_of(file)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{path} is no collection of schemas with instances ({error}).") from error
    if not records:
        raise UsageError(f"There are no schemas in {path}: name the folder of the collection.")
    return records


def _records_of(file: Path) -> Iterator[Record]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".jsonl":
        for line in text.splitlines():
            row = json.loads(line)
            yield Record(row["id"], row["subset"], row["schema"], _instances(row["tests"]))
        return
    for number, group in enumerate(json.loads(text)):
        name = f"{file.stem} {number}: {group['description']}"
        yield Record(name, file.stem, group["schema"], _instances(group["tests"]))


def _instances(tests: list[dict[str, Any]]) -> tuple[Instance, ...]:
    return tuple(Instance(test["valid"], test["data"]) for test in tests)
