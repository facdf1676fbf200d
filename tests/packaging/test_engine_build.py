"""How the engine is compiled: one set of arguments for here, one for everywhere."""

import os
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path

import llama_cpp
import pytest
from engine_build import (
    PROJECT_INCLUDE,
    build_environment,
    native_arguments,
    portable_arguments,
)

SOURCE, BUILD = Path("/somewhere/source"), Path("/somewhere/build")


def portable(platform: str = "linux", vision: bool = True) -> list[str]:
    return portable_arguments(SOURCE, BUILD, vision=vision, platform=platform)


def test_a_portable_build_uses_nothing_of_this_processor() -> None:
    assert "-DGGML_NATIVE=OFF" in portable()
    assert not any("march" in argument or "mtune" in argument for argument in portable())
    assert "-DGGML_NATIVE=OFF" not in native_arguments("linux")


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_a_portable_build_has_a_library_for_every_kind_of_processor(platform: str) -> None:
    assert {"-DGGML_BACKEND_DL=ON", "-DGGML_CPU_ALL_VARIANTS=ON"} <= set(portable(platform))


def test_a_mac_has_one_library() -> None:
    assert not any("VARIANTS" in argument for argument in portable("darwin"))


def test_vision_is_built_into_packages_and_can_be_left_out() -> None:
    assert "-DLLAVA_BUILD=ON" in portable()
    assert "-DLLAVA_BUILD=OFF" in portable(vision=False)
    assert "-DLLAVA_BUILD=ON" in native_arguments("linux")
    for arguments in (portable(), native_arguments("linux")):
        assert "-DMTMD_VIDEO=OFF" in arguments


def test_the_engine_that_is_installed_leaves_amx_alone() -> None:
    """Compiled by GCC 12, its tiles end the program at the first answer (llama.cpp#20824)."""
    assert b"AMX_INT8 = 1" not in llama_cpp.llama_print_system_info()


def test_the_engine_that_is_installed_computes_short_questions_together() -> None:
    """Elsewhere llama.cpp's attention would have been left as it is, with a warning in the log."""
    assert b"FA_ROWS = 512" in llama_cpp.llama_print_system_info()


@pytest.mark.skipif(sys.platform == "win32", reason="MSVC compiles no AMX")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have no AMX")
def test_a_flag_for_amx_brings_no_code_that_uses_it() -> None:
    (line,) = re.findall(r"add_compile_options\((.*)\)", PROJECT_INCLUDE.read_text())
    macros = subprocess.run(
        ["c++", *line.split(), "-mamx-tile", "-mamx-int8", "-dM", "-E", "-x", "c++", os.devnull],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "__SSE2__" in macros.stdout and "AMX" not in macros.stdout


def test_no_message_of_the_engine_names_the_folder_it_was_built_in() -> None:
    (flags,) = [each for each in portable() if each.startswith("-DCMAKE_CXX_FLAGS=")]
    assert f"-ffile-prefix-map={SOURCE}=llama.cpp" in flags
    assert f"-ffile-prefix-map={BUILD}=llama.cpp" in flags


def test_arguments_with_spaces_reach_cmake_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_OPENMP=OFF")
    arguments = shlex.split(build_environment(portable())["CMAKE_ARGS"])
    assert arguments == [*portable(), "-DGGML_OPENMP=OFF"]
