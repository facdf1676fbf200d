"""The copy of a model with another template."""

import shutil
from collections import namedtuple
from datetime import datetime
from pathlib import Path

import gguf
import numpy as np
import pytest

from app.bench.thinking_model import TEMPLATE, write_thinking_model
from app.chat.message import Role
from app.chat.template import ChatTemplate
from app.chat.turns import Turn
from engine.errors import ModelDamaged, UsageError
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes_text import FakeTokenizer

NOON = datetime(2026, 3, 1, 12, 0)


def read(path: Path) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    reader = gguf.GGUFReader(path)
    fields = {
        name: one.contents() for name, one in reader.fields.items() if not name.startswith("GGUF.")
    }
    return fields, {tensor.name: np.array(tensor.data) for tensor in reader.tensors}


def test_all_but_the_template_is_the_same(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    copy = write_thinking_model(model, tmp_path)
    fields, tensors = read(model)
    copied_fields, copied_tensors = read(copy)
    assert copied_fields.pop("tokenizer.chat_template") == TEMPLATE
    assert copied_fields == fields
    assert copied_tensors.keys() == tensors.keys()
    assert all(np.array_equal(copied_tensors[name], tensors[name]) for name in tensors)


def test_a_template_is_replaced_and_never_doubled(tmp_path: Path) -> None:
    once = write_thinking_model(write_tiny_model(tmp_path / "tiny.gguf"), tmp_path)
    data = once.read_bytes()
    once.write_bytes(data.replace(TEMPLATE.encode(), b"x" * len(TEMPLATE)))
    twice = write_thinking_model(once, tmp_path)
    assert twice.read_bytes() == data


def test_llama_cpp_opens_the_copy(tmp_path: Path) -> None:
    from engine.backends.llama_cpp.model import LlamaModel

    copy = write_thinking_model(write_tiny_model(tmp_path / "tiny.gguf"), tmp_path)
    model = LlamaModel(copy, facts_only=True)
    assert model.info().chat_template == TEMPLATE
    model.close()


def test_the_thought_stands_before_an_answer_until_it_is_history() -> None:
    template = ChatTemplate(TEMPLATE, FakeTokenizer())
    turns = [Turn(Role.USER, "One?"), Turn(Role.ASSISTANT, "1."), Turn(Role.USER, "Two?")]
    first, second = (template.render(path, NOON).text for path in (turns[:1], turns))
    assert first.count("<think>") == second.count("<think>") == 1
    assert first.endswith("</think>\n\n") and second.endswith("</think>\n\n")
    assert "assistant\n1." in second


def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + bytes([3, 0, 0, 0]) + b"\xff" * 40)
    with pytest.raises(ModelDamaged, match="no GGUF"):
        write_thinking_model(file, tmp_path)


def test_a_disk_without_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = write_tiny_model(tmp_path / "tiny.gguf")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1, 1, 0))
    with pytest.raises(UsageError, match="make room"):
        write_thinking_model(model, tmp_path)
    assert not (tmp_path / "tiny-thinking.gguf").exists()
