"""How llama.cpp is compiled: for the processor at hand, or for every one that a package may meet.

Either build is cut to what Python loads, a third of the work and a tenth of the size. What has no
switch is set in a project include, engine.cmake, which also changes how llama.cpp computes the
attention of a short piece of a prompt (engine_attention.cmake).
"""

from __future__ import annotations  # install.py must get as far as its sentence on an older Python

import os
import shlex
import sys
from pathlib import Path

PROJECT_INCLUDE = Path(__file__).resolve().parent / "engine.cmake"
INCLUDED = PROJECT_INCLUDE, PROJECT_INCLUDE.with_name("engine_attention.cmake")
LIBRARIES = "llama_cpp/lib"


def native_arguments(platform: str = sys.platform) -> list[str]:
    """CMake's arguments for this processor alone (GGML_NATIVE stays on)."""
    return [*_cut_to_python(platform), *_multimodal(vision=True)]


def portable_arguments(
    source: Path, build: Path, *, vision: bool = True, platform: str = sys.platform
) -> list[str]:
    """CMake's arguments for a package: no code that only some processors have, no path of ours.

    Where a processor's makers never agreed on a common set of instructions, each set has its own
    library and the best that runs is chosen at the start; on a Mac one is enough. `source` and
    `build` are folders whose names would otherwise stand in the messages of failed assertions.
    """
    arguments = [*_cut_to_python(platform), *_multimodal(vision), "-DGGML_NATIVE=OFF"]
    if platform != "darwin":
        arguments += [
            "-DGGML_BACKEND_DL=ON",
            "-DGGML_CPU_ALL_VARIANTS=ON",
            # The variants are installed as programs are; the loader looks beside libllama.
            f"-DCMAKE_INSTALL_BINDIR={LIBRARIES}",
        ]
    if platform != "win32":
        flags = " ".join(f"-ffile-prefix-map={folder}=llama.cpp" for folder in (source, build))
        arguments += [f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_CXX_FLAGS={flags}"]
    return arguments


def build_environment(arguments: list[str]) -> dict[str, str]:
    """The environment in which pip builds the engine. The user's CMAKE_ARGS come last and win."""
    cores = str(os.cpu_count() or 1)
    return {
        **os.environ,
        "CMAKE_ARGS": f"{shlex.join(arguments)} {os.environ.get('CMAKE_ARGS', '')}".strip(),
        "CMAKE_BUILD_PARALLEL_LEVEL": os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", cores),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_USER": "0",
    }


def _multimodal(vision: bool) -> list[str]:
    """With or without the part that reads pictures and sounds (mtmd): a third of the whole work."""
    # Video would start a program named ffmpeg, whichever one the user's PATH has.
    return [f"-DLLAVA_BUILD={'ON' if vision else 'OFF'}", "-DMTMD_VIDEO=OFF"]


def _cut_to_python(platform: str) -> list[str]:
    arguments = [f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={PROJECT_INCLUDE.as_posix()}"]
    if platform == "linux":
        # A wheel holds no links: without this each library comes six times, and two are loaded.
        arguments += ["-DCMAKE_PLATFORM_NO_VERSIONED_SONAME=ON"]
        arguments += [f"-DCMAKE_INSTALL_LIBDIR={LIBRARIES}"]
    return arguments
