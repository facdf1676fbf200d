"""The model that comes along."""

from pathlib import Path

import pytest

from app.models import starter as starter_room
from app.models.starter import starter_model


def test_it_is_a_gguf_file_inside_the_installed_package(starter: Path) -> None:
    assert starter == starter_model()
    assert starter.read_bytes()[:4] == b"GGUF"


def test_without_the_package_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starter_room.importlib.util, "find_spec", lambda name: None)
    assert starter_model() is None
