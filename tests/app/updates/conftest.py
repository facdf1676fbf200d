"""A place where versions are published for each test, and no proxy on the way there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.models.connections import Connections
from tests.fakes_releases import FakeReleases


@pytest.fixture
def releases(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeReleases]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with FakeReleases().serving() as releases:
        yield releases


@pytest.fixture
def connections(tmp_path: Path) -> Connections:
    return Connections(tmp_path / "connections")
