"""Conversations on a memory that can be cut anywhere, and on one that keeps whole states."""

import pytest

from tests.engine.talk import Talk


@pytest.fixture(params=[True, False], ids=["ranges", "states"])
def talk(request: pytest.FixtureRequest) -> Talk:
    return Talk(can_cut=request.param)


@pytest.fixture
def ranges() -> Talk:
    return Talk()
