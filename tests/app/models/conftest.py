"""A Hugging Face of our own for each test, and no other programs' models."""

from collections.abc import Iterator

import pytest

from tests.fakes_hub import FakeHub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with FakeHub().serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.lower(), raising=False)
        yield hub
