"""The Python that an environment is made with: of this architecture, new enough, and whole."""

import json
import platform
import struct
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from app.cuda.python import Python, find_python
from app.machine.gpu import ask_program
from engine.errors import InstallationFailed


def facts(version: Sequence[int] = (3, 12, 1), **more: Any) -> str:
    usual = {
        "version": version,
        "machine": platform.machine(),
        "bits": 8 * struct.calcsize("P"),
        "makes": True,
    }
    return json.dumps(usual | more)


def find(system: str = "linux", **told: str) -> Python:
    """With these programs on the path, and what they say of themselves."""

    def ask(command: Sequence[str]) -> str:
        return told.get(command[0], "") if command[1] != "-3.14" else told.get("py314", "")

    return find_python(ask, lambda name: name if name in told else None, system, own=())


def test_this_one_is_found_by_itself() -> None:
    found = find_python(ask_program, lambda name: None, sys.platform, own=(sys.executable,))
    assert found == Python((sys.executable,), ".".join(map(str, sys.version_info[:3])))


def test_the_best_known_version_goes_before_the_newest() -> None:
    found = find(**{"python3.14": facts((3, 14, 0)), "python3.13": facts((3, 13, 2))})
    assert found == Python(("python3.13",), "3.13.2")


@pytest.mark.parametrize(
    "useless",
    [
        "",
        "no JSON",
        "{}",
        facts((3, 10, 9)),
        facts(machine="another"),
        facts(bits=16),
    ],
)
def test_one_that_is_of_no_use_is_passed_over(useless: str) -> None:
    told = {"python3.13": useless, "python3": facts((3, 11, 2))}
    assert find(**told).command == ("python3",)
    with pytest.raises(InstallationFailed, match="3.11 or newer"):
        find(**{"python3.13": useless})


def test_one_without_venv_is_named_with_the_remedy() -> None:
    with pytest.raises(InstallationFailed, match="Python 3.12.1 is here, but without its venv"):
        find(**{"python3": facts(makes=False)})


def test_on_windows_the_launcher_is_asked_for_each_version() -> None:
    assert find("win32", py=facts((3, 13, 1))).command == ("py", "-3.13")
    assert find("win32", py="", py314=facts((3, 14, 1))).command == ("py", "-3.14")
    with pytest.raises(InstallationFailed, match="winget install"):
        find("win32")
