"""Which of the libraries for kinds of processors was chosen; nobody has to guess."""

import ctypes
import shutil
import sys
from pathlib import Path

import pytest

from engine.backends.llama_cpp import library
from engine.backends.llama_cpp.library import processor_kind


def test_the_build_for_this_machine_has_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = {file.name for file in library.LIBRARIES.iterdir()}
    if not any("ggml-cpu-" in name for name in libraries):
        assert processor_kind() == ""
    else:
        assert any(f"ggml-cpu-{processor_kind()}." in name for name in libraries)


@pytest.mark.skipif(sys.platform != "linux", reason="how Linux names libraries")
def test_of_several_kinds_the_loaded_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "LIBRARIES", tmp_path)
    (some_library,) = Path(library.bindings.__file__).parent.glob("lib/libggml-base.so")
    for kind in ("haswell", "sse42", "zen4"):
        shutil.copyfile(some_library, tmp_path / f"libggml-cpu-{kind}.so")
    assert processor_kind() == ""
    ctypes.CDLL(str(tmp_path / "libggml-cpu-sse42.so"))
    assert processor_kind() == "sse42"
