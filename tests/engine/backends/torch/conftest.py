"""Without torch nothing here can run, and says so."""

from importlib.util import find_spec
from pathlib import Path

import pytest

REASON = "torch is not installed: the torch engine is an extra ([cuda])"


class WithoutTorch(pytest.Module):
    """A file of tests that is not even imported."""

    def collect(self):  # type: ignore[no-untyped-def]
        pytest.skip(REASON, allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    if find_spec("torch") is not None and find_spec("transformers") is not None:
        return None
    module: pytest.Module = WithoutTorch.from_parent(parent, path=module_path)
    return module
