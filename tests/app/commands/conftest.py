"""Commands on a real home whose model is a fake."""

from collections.abc import AsyncIterator

import pytest

from app.paths import Paths
from tests.fakes_model import FakeEngine, FakeModelServices


@pytest.fixture
async def services(paths: Paths) -> AsyncIterator[FakeModelServices]:
    services = FakeModelServices(paths, FakeEngine(script="Good day 🙂"))
    yield services
    await services.close()
