"""The engine of packages: built when its inputs change, and only then."""

from pathlib import Path

import engine_wheel
import pytest
from engine_wheel import BuildError, EngineWheelFolder, inputs, locked_entry


def test_another_version_or_choice_is_another_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = inputs(vision=True)
    assert inputs(vision=True) == before
    assert inputs(vision=False) != before
    lock = tmp_path / "app.lock"
    lock.write_text("llama-cpp-python==9.9.9 \\\n    --hash=sha256:00\nllguidance==1\n")
    monkeypatch.setattr(engine_wheel, "LOCK", lock)
    assert inputs(vision=True) != before


def test_what_is_built_is_what_the_lock_names_with_its_hashes() -> None:
    lines = locked_entry("llama-cpp-python").splitlines()
    assert lines[0].startswith("llama-cpp-python==")
    assert any("--hash=sha256:" in line for line in lines)
    assert not any(line.startswith("llguidance") for line in lines)


def test_a_package_that_is_not_locked_is_refused() -> None:
    with pytest.raises(BuildError, match="make lock"):
        locked_entry("a-package-that-nobody-has")


def test_a_wheel_that_was_not_finished_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "llama_cpp_python-1-py3-none-any.whl").touch()
    assert EngineWheelFolder(tmp_path).wheel() is None
    finished = tmp_path / "llama_cpp_python-1-py3-none-any.whl"
    finished.touch()
    assert EngineWheelFolder(tmp_path).wheel() == finished


def test_the_licence_of_all_that_the_engine_has_taken_in_is_kept(tmp_path: Path) -> None:
    files = {
        "LICENSE": "MIT License of the project",
        "licenses/LICENSE-jsonhpp": "MIT License of a header",
        "vendor/CMakeLists.txt": "",
        "vendor/cpp-httplib/LICENSE": "not linked",
        "vendor/hash/xxhash/LICENSE": "BSD 2-Clause License",
        "vendor/hash/xxhash/xxhash.c": "/* Permission is hereby granted: not looked at */",
        "vendor/stb/stb_image.h": "/* what it does */ code();\n/* Permission is hereby granted */",
        "vendor/stb/other.h": "/* nothing of the kind */",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert engine_wheel.vendored_licences(tmp_path) == {
        "llama.cpp": "MIT License of the project",
        "nlohmann": "MIT License of a header",
        "hash-xxhash": "BSD 2-Clause License",
        "stb": "/* Permission is hereby granted */",
    }
