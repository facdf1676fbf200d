"""Whether this processor can run what a package carries; asked before any of it is loaded.

NumPy's wheels and the slowest of the engine's libraries need x86-64-v2, which Intel's and AMD's
processors have had since 2009 and 2011. An older one ends the process in the middle of an import,
without a word.
"""

import ctypes
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

# The x86-64 ABI's second level by the names of /proc/cpuinfo, and where CPUID tells of each: the
# leaf by glibc's numbers (0 is leaf 1, 2 is leaf 80000001), and the bit in its third register.
LEVEL_2: Mapping[str, tuple[int, int]] = {
    "pni": (0, 0),
    "ssse3": (0, 9),
    "cx16": (0, 13),
    "sse4_1": (0, 19),
    "sse4_2": (0, 20),
    "popcnt": (0, 23),
    "lahf_lm": (2, 0),
}
ECX = 2
CPUINFO = Path("/proc/cpuinfo")
WINDOWS_SSE4_2 = 38
"""PF_SSE4_2_INSTRUCTIONS_AVAILABLE of IsProcessorFeaturePresent."""


def why_too_old() -> str:
    """The sentence for a processor that cannot run this, or nothing."""
    missing = missing_instructions()
    if not missing:
        return ""
    return (
        f"This processor is too old for Inglenook: it lacks {', '.join(missing)}, which processors"
        " have had since about 2010 (x86-64-v2). Use a newer machine."
    )


def missing_instructions() -> list[str]:
    """What of the second level this processor lacks; nothing on other kinds of processor."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return []
    if sys.platform == "win32":
        has_them = ctypes.windll.kernel32.IsProcessorFeaturePresent(WINDOWS_SSE4_2)
        return [] if has_them else ["sse4_2"]
    if sys.platform != "linux":
        return []
    try:
        # The instruction itself: under an emulator the file tells of another processor.
        return _missing_bits()
    except AttributeError:
        return missing_flags(CPUINFO)


def _missing_bits() -> list[str]:
    """By CPUID, as the C library has read it. Raises AttributeError before glibc 2.33."""
    leaf = ctypes.CDLL(None).__x86_get_cpuid_feature_leaf
    leaf.argtypes, leaf.restype = [ctypes.c_uint], ctypes.POINTER(ctypes.c_uint * 8)
    return [
        name for name, (number, bit) in LEVEL_2.items() if not leaf(number).contents[ECX] >> bit & 1
    ]


def missing_flags(cpuinfo: Path) -> list[str]:
    """By what this file says of its first processor; nothing where it names no flags."""
    try:
        lines = cpuinfo.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return [flag for flag in LEVEL_2 if flag not in value.split()]
    return []
