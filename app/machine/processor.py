"""The processor of this machine, and how much of it our build of llama.cpp uses."""

import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.cores import physical_cores, usable_cores

FEATURES: Mapping[str, tuple[str, ...]] = {
    "SSE3": ("pni", "sse3"),
    "SSSE3": ("ssse3",),
    "AVX": ("avx", "avx1.0"),
    "AVX2": ("avx2",),
    "F16C": ("f16c",),
    "FMA": ("fma",),
    "BMI2": ("bmi2",),
    "AVX_VNNI": ("avx_vnni",),
    "AVX512": ("avx512f",),
    "AVX512_VBMI": ("avx512vbmi",),
    "AVX512_VNNI": ("avx512_vnni",),
    "AVX512_BF16": ("avx512_bf16",),
    "AMX_INT8": ("amx_int8",),
    "NEON": ("asimd", "neon", "hw.optional.neon"),
    "ARM_FMA": ("asimd", "hw.optional.neon"),
    "FP16_VA": ("asimdhp", "hw.optional.arm.feat_fp16"),
    "DOTPROD": ("asimddp", "hw.optional.arm.feat_dotprod"),
    "MATMUL_INT8": ("i8mm", "hw.optional.arm.feat_i8mm"),
    "SVE": ("sve",),
    "SME": ("sme", "hw.optional.arm.feat_sme"),
}
"""By llama.cpp's names: what the system calls each of them."""
REBUILD = (
    "run `make install` again in a fresh .venv: it builds the engine for the processor that it"
    " finds"
)
PATIENCE_S = 5.0
LOADING_S = 60.0
LIBRARY = "engine.backends.llama_cpp.library"
ILLEGAL_INSTRUCTION = 0xC000001D
"""How Windows says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """`has`: its features. `uses`: those that the build of llama.cpp was made with. `variant`: the
    one of several builds that was chosen at the start, or empty where there is only one."""

    name: str
    num_cores: int
    num_usable: int
    has: tuple[str, ...]
    uses: tuple[str, ...]
    variant: str
    build: str

    @property
    def unused(self) -> tuple[str, ...]:
        """What it could do faster, and the build does not know of."""
        return tuple(name for name in self.has if name not in self.uses)

    @property
    def about_build(self) -> str:
        """Which build runs, and why not a better one."""
        kind = f"the variant {self.variant}" if self.variant else "one build for this processor"
        told = f"llama.cpp {self.build}, {kind}, uses {', '.join(self.uses) or 'no vectors'}"
        if not self.unused:
            return f"{told}: all that it has kernels for here"
        return f"{told}, and not {', '.join(self.unused)}, which this processor has"


def look_at_processor() -> Processor:
    """Loads the library, which takes a moment the first time."""
    from engine.backends.llama_cpp.library import build_name, processor_kind

    version, commit, told = build_name()
    return Processor(
        name=cpu_name(),
        num_cores=physical_cores(),
        num_usable=usable_cores(),
        has=features_of(flags()),
        uses=used_features(told),
        variant=processor_kind(),
        build=build_words(version, commit),
    )


def build_words(version: str, commit: str) -> str:
    """Which llama.cpp it is, as its own project calls it."""
    # "dirty" tells of the folder that it was packed in, and nothing that can be looked up.
    commit = commit.removesuffix("-dirty")
    return f"{version} ({commit})" if commit else version


def how_the_library_ends() -> str:
    """What becomes of a process that loads llama.cpp; empty: it goes on.

    A build for another processor ends it at the first instruction that is not known here, and then
    this process must not try.
    """
    # A bundle has no interpreter to ask, and its builds are chosen by what the processor can do.
    if LIBRARY in sys.modules or getattr(sys, "frozen", False):
        return ""
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"import {LIBRARY}"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LOADING_S,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except (OSError, subprocess.SubprocessError):
        # Nothing can be told; whoever loads it will see.
        return ""
    if done.returncode in (-signal.SIGILL, ILLEGAL_INSTRUCTION):
        return "an instruction that this processor does not have"
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
    return ""


def features_of(found: frozenset[str]) -> tuple[str, ...]:
    """Those of FEATURES that the system's words name."""
    return tuple(name for name, words in FEATURES.items() if found & set(words))


def used_features(told: str) -> tuple[str, ...]:
    """Out of what llama.cpp says of its build: `CPU : SSE3 = 1 | AVX2 = 1 | ...`."""
    return tuple(name for name in re.findall(r"(\w+) = 1", told) if name in FEATURES)


def flags() -> frozenset[str]:
    """The system's words for what the processor can do; empty where it does not tell."""
    if platform.system() == "Darwin":
        return frozenset(_of_sysctl(_said("sysctl", "hw.optional", "machdep.cpu.features")))
    words: set[str] = set()
    for line in _cpuinfo():
        name, _, value = line.partition(":")
        if name.strip().lower() in ("flags", "features"):
            words |= set(value.split())
    return frozenset(words)


def cpu_name() -> str:
    for line in _cpuinfo():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cpuinfo() -> list[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The others are like the first.
    return text.partition("\n\n")[0].splitlines()


def _of_sysctl(text: str) -> Sequence[str]:
    words: list[str] = []
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words += [name.strip().lower()] if value.strip() == "1" else value.lower().split()
    return words


def _said(*command: str) -> str:
    """What a program of the system writes; empty when it is not there or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
