"""Kernels become machine code for every card, without a card.

`python -m kernels.compile_matrix` compiles the whole list; here is a part of it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.compile_matrix import Build, main
from kernels.language import INTERPRETED

ROOT = Path(__file__).resolve().parent.parent.parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton's assembler is for Linux")


def compiling(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python that compiles kernels, and does not interpret them."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"},
        capture_output=True,
        text=True,
    )


# All but those of packed weights, of which there is one for every type and number of tokens.
KERNELS = ("norm", "rotate", "decode", "join", "extend", "gated", "bitmask", "penalty", "sample")


def test_a_model_is_compiled_without_spills_and_within_the_cards_memory() -> None:
    options = ["--shape", "smollm2-135m-int8", "--targets", "86,90"]
    for name in KERNELS:
        options += ["--kernel", f"{name}_kernel"]
    done = compiling("-m", "kernels.compile_matrix", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    *lines, last = done.stdout.splitlines()
    summary = json.loads(last)
    assert summary["bad"] == 0 and summary["builds"] == len(lines) >= 20
    for name in KERNELS:
        assert any(f"{name}_kernel" in line for line in lines)
    for name in ("decode_kernel", "extend_kernel"):
        products = [line for line in lines if name in line]
        assert products and all(" mma " in line for line in products)


SPILLING = """
import kernels.decode_attention
from kernels.card import Card
from kernels.compile_matrix import compile_spec
from kernels.configs import Tile
from kernels.shapes import SHAPES
from kernels.specs import specs_for

# Four warps have too few registers for so many float32 numbers.
kernels.decode_attention.decode_tile = lambda *_: Tile(16, 32, 4, 2)
shape = next(shape for shape in SHAPES if shape.name == "llama-3.1-8b-fp32")
spec = next(x for x in specs_for(shape, Card.DESKTOP) if x.name == "decode_kernel")
build = compile_spec(spec, 86)
print(build.spilled > 0, build.is_good)
"""


def test_a_build_that_spills_is_seen_and_bad() -> None:
    done = compiling("-c", SPILLING)
    assert done.stdout.split() == ["True", "False"], done.stdout + done.stderr


def test_a_build_that_asks_for_more_memory_than_the_card_has_is_bad() -> None:
    def build(target: int, shared_memory: int) -> Build:
        return Build("some", target, 255, 0, shared_memory, False, None, None, 1.0)

    assert build(86, 99 * 1024).is_good and not build(86, 99 * 1024 + 1).is_good
    assert build(90, 99 * 1024 + 1).is_good and not build(90, 227 * 1024 + 1).is_good


KEEPING = """
import sys
from pathlib import Path
from kernels.compile_matrix import main

cache = Path(sys.argv[1])

def kept(kernel):
    options = ["--shape", "odd", "--targets", "90", "--cache", str(cache), "--quiet"]
    main([*options, "--kernel", kernel])
    return {file: file.stat().st_mtime_ns for file in cache.iterdir()}

first = kept("gated_kernel")
print(len(first), kept("gated_kernel") == first, len(kept("scale_kernel")), file=sys.stderr)
"""


def test_a_result_is_kept_until_something_changes(tmp_path: Path) -> None:
    done = compiling("-c", KEEPING, str(tmp_path))
    assert done.stderr.split() == ["1", "True", "2"], done.stdout + done.stderr


@pytest.mark.skipif(not INTERPRETED, reason="kernels are not interpreted")
def test_in_the_interpreter_there_is_nothing_to_compile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 1
    said = capsys.readouterr()
    assert said.err == "Nothing can be compiled without Triton, or with TRITON_INTERPRET=1.\n"
