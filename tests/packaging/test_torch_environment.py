"""The environment with torch: what is above it is seen from it, and without torch there is none."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from torch_environment import TorchEnvironment


class WithoutNetwork(TorchEnvironment):
    """Installs nothing; what pip would have been asked for is kept."""

    def __init__(self, above: Path, *, finds: bool) -> None:
        super().__init__(above)
        self.asked: list[tuple[str, ...]] = []
        self._finds = finds

    def _pip(self, *arguments: str) -> bool:
        self.asked.append(arguments)
        return self._finds


def test_it_sees_the_packages_of_the_environment_above_it(tmp_path: Path) -> None:
    environment = WithoutNetwork(tmp_path, finds=True)
    assert not environment.is_there
    assert environment.bring()
    assert environment.is_there
    (link,) = (tmp_path / "torch").rglob("above.pth")
    assert link.read_text().strip() == sysconfig.get_path("purelib")
    imported = subprocess.run(
        [environment.program, "-c", "import pytest"], stderr=subprocess.DEVNULL
    )
    assert imported.returncode == 0


@pytest.mark.skipif(sys.platform == "darwin", reason="torch for a Mac has but one build")
def test_only_the_build_for_processors_is_asked_for(tmp_path: Path) -> None:
    environment = WithoutNetwork(tmp_path, finds=True)
    environment.bring()
    (build,), *_ = environment.asked
    assert build.startswith("torch==") and build.endswith("+cpu")


def test_without_torch_nothing_is_left_that_tests_would_be_run_in(tmp_path: Path) -> None:
    environment = WithoutNetwork(tmp_path, finds=False)
    assert not environment.bring()
    assert not (tmp_path / "torch").exists()
    assert not environment.is_there
