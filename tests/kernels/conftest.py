"""Kernels run in Triton's interpreter here; where torch or Triton is missing, nothing is tested."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

MISSING = [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]


class Unneeded(pytest.Module):
    """A file of tests that cannot even be imported."""

    def collect(self) -> Iterator[pytest.Item]:
        pytest.skip(f"{' and '.join(MISSING)} not installed: there are no kernels to test")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    return Unneeded.from_parent(parent, path=module_path) if MISSING else None


if not MISSING:
    from tests.kernels.memory import Memory

    @pytest.fixture(autouse=True)
    def right_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
        from kernels.language import INTERPRETED

        if INTERPRETED:
            from tests.kernels.bfloat16 import install

            install(monkeypatch)

    @pytest.fixture
    def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
        """What an operation makes room for is full of NaN and has guarded margins."""
        memory = Memory()
        monkeypatch.setattr("torch.empty", memory.empty)
        monkeypatch.setattr("torch.empty_like", memory.empty_like)
        yield memory
        memory.check()
