"""An adapter on the real starter, by commands alone: it answers, and the answer names it."""

from pathlib import Path

import pytest

from app.paths import Paths
from engine.backends.llama_cpp.gguf_header import read_header
from tests.app.models.test_way_in import command
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter

pytestmark = pytest.mark.model
CHANGED = ("blk.3.attn_q.weight", "blk.20.ffn_down.weight")


def test_an_adapter_changes_the_answer_and_is_named(home: Path, starter: Path) -> None:
    sizes = {each.name: each.sizes for each in read_header(starter).tensors}
    changed = {name: (sizes[name][0], sizes[name][1]) for name in CHANGED}
    path = write_tiny_adapter(home / "pirate.gguf", changed=changed)
    ask = ("generate", "Say hello.", "--max-tokens", "8", "--temperature", "0")
    plain = command(home, *ask)
    adapted = command(home, *ask, "--lora", f"{path}:0.8")
    assert adapted["model"] == f"{plain['model']} + pirate 0.8"
    assert adapted["text"] != plain["text"]
    assert command(home, "models", "add", str(path))["name"] == "pirate"
    again = command(home, *ask, "--lora", "pirate:0.8")
    assert (again["model"], again["text"]) == (adapted["model"], adapted["text"])
    silent = command(home, *ask, "--lora", "pirate:0")
    assert (silent["model"], silent["text"]) == (plain["model"], plain["text"])
    assert not (Paths.from_environment({"INGLENOOK_HOME": str(home)}).kv / "models.json").exists()
