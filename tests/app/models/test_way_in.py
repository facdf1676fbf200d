"""The whole way of a model, by commands alone: searched, downloaded, used, and it answers."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.models.connections import Connections
from app.paths import Paths
from tests.fakes_hub import FakeHub

pytestmark = pytest.mark.model
REPO = "somebody/SmolLM2-again"


def command(home: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments, "--json"],
        env={**os.environ, "INGLENOOK_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_model_comes_is_used_answers_and_goes(home: Path, hub: FakeHub, starter: Path) -> None:
    hub.files[REPO] = {"again-Q4_1.gguf": starter.read_bytes()}
    (found,) = command(home, "models", "search", "smollm2")["models"]
    assert (found["repo"], found["licence"]) == (REPO, "apache-2.0")
    told = command(home, "models", "download", f"{found['repo']}:Q4_1")
    assert (told["name"], told["bytes"]) == ("again-Q4_1", starter.stat().st_size)
    assert command(home, "models", "use", "again-Q4_1")["name"] == "again-Q4_1"
    answer = command(home, "generate", "Say hello.", "--max-tokens", "5", "--temperature", "0")
    assert answer["model"] == "again-Q4_1" and answer["text"]
    rows = {row["name"]: row for row in command(home, "models", "list")["models"]}
    assert rows["again-Q4_1"]["chosen"] and rows["again-Q4_1"]["source"] == "downloaded"
    command(home, "models", "use", "starter")
    assert command(home, "models", "remove", "again-Q4_1", "--yes")["removed"] == "again-Q4_1"
    assert not Path(told["path"]).exists()
    noted = Connections(Paths.from_environment({"INGLENOOK_HOME": str(home)}).connections).all()
    assert [each.why for each in noted] == [
        "download of again-Q4_1",
        "download of again-Q4_1",
        f"the files of {REPO}",
        "search for “smollm2”",
    ]
