"""Compile every spec for every card, without a card: python -m kernels.compile_matrix

A build is bad when it spills registers, asks for more shared memory than the card has, or issues
more instructions for a packed weight than the card can while its bytes come. Results
are kept under a hash of all that a build depends on, so that what has not changed is not compiled
again.
Must not run with TRITON_INTERPRET=1, where there is nothing to compile.
"""

import argparse
import contextlib
import hashlib
import io
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernels.card import card_with
from kernels.language import (
    HAS_TRITON,
    INTERPRETED,
    TRITON_VERSION,
    compile_for,
    disassembled,
    source_key,
)
from kernels.launch import Spec
from kernels.quant.budget import allowed_instructions, issued_instructions
from kernels.quant.matvec import matvec_kernel
from kernels.shapes import SHAPES
from kernels.specs import specs_for

# Read at once, so that a file that changes meanwhile does not pass for the one that runs.
SOURCE = Path(__file__).read_text(encoding="utf-8")

TARGETS = (80, 86, 89, 90, 120)


@dataclass(frozen=True, slots=True)
class Build:
    """What compiling one spec for one target gave; sizes in bytes, spills stored and loaded.

    `issued`, `allowed`: instructions for each packed weight, where they are counted and bounded.
    """

    name: str
    target: int
    registers: int
    spilled: int
    shared_memory: int
    has_matrix_products: bool
    seconds: float
    issued: float | None = None
    allowed: float | None = None

    @property
    def is_good(self) -> bool:
        return (
            self.spilled == 0
            and self.shared_memory <= card_with(self.target).shared_memory
            and (self.issued is None or self.allowed is None or self.issued <= self.allowed)
        )


def compile_spec(spec: Spec, target: int) -> Build:
    log = io.StringIO()
    start = time.perf_counter()
    with contextlib.redirect_stdout(log):
        compiled = compile_for(spec, target)
    text = log.getvalue()
    registers = re.search(r"Used (\d+) registers", text)
    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", text)
    if registers is None or len(spills) != 2:
        raise RuntimeError(f"ptxas said nothing about {spec.name}: {text!r}")
    assembly = str(compiled.asm["ptx"])
    constants = dict(spec.constants)
    issued = allowed = None
    if spec.kernel is matvec_kernel:
        issued = issued_instructions(spec, disassembled(compiled.asm["cubin"]))
        if constants["SLOTS"] == 1:
            allowed = allowed_instructions(constants["FORMAT"], target)
    return Build(
        spec.name,
        target,
        int(registers[1]),
        sum(map(int, spills)),
        int(compiled.metadata.shared),
        "mma.sync" in assembly or "wgmma.mma_async" in assembly,
        round(time.perf_counter() - start, 2),
        issued,
        allowed,
    )


def builds(
    shape_names: Sequence[str],
    targets: Sequence[int],
    cache: Path,
    kernel_names: Sequence[str] = (),
) -> Iterator[tuple[Spec, Build]]:
    """Every spec of these shapes and kernels (none: of all) for every target, each pair once."""
    cache.mkdir(parents=True, exist_ok=True)
    wanted = [shape for shape in SHAPES if not shape_names or shape.name in shape_names]
    for target in targets:
        card = card_with(target)
        specs = dict.fromkeys(spec for shape in wanted for spec in specs_for(shape, card))
        for spec in specs:
            if kernel_names and spec.name not in kernel_names:
                continue
            yield spec, _kept_build(spec, target, cache)


def _kept_build(spec: Spec, target: int, cache: Path) -> Build:
    parts = (source_key(spec), target, spec.types, spec.aligned, spec.constants)
    text = repr((*parts, spec.num_warps, spec.num_stages, SOURCE))
    file = cache / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
    if file.exists():
        return Build(**json.loads(file.read_text()))
    build = compile_spec(spec, target)
    file.write_text(json.dumps(asdict(build)))
    return build


def described(spec: Spec) -> str:
    constants = " ".join(
        f"{name}={value}" for name, value in spec.constants if value not in (False, None)
    )
    types = ",".join(dict.fromkeys(kind for _, kind in spec.types if kind.startswith("*")))
    return f"{spec.name} {types} {constants} warps={spec.num_warps} stages={spec.num_stages}"


def issue(build: Build) -> str:
    if build.issued is None:
        return ""
    bound = "" if build.allowed is None else f" of {build.allowed:.2f}"
    return f" instructions per weight: {build.issued:.2f}{bound}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kernels.compile_matrix")
    parser.add_argument("--targets", default=",".join(map(str, TARGETS)), help="such as 86,90")
    parser.add_argument("--shape", action="append", default=[], choices=[s.name for s in SHAPES])
    parser.add_argument("--kernel", action="append", default=[], help="such as decode_kernel")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder of results")
    parser.add_argument("--quiet", action="store_true", help="only what is bad, and the sum")
    options = parser.parse_args(arguments)
    if not HAS_TRITON or INTERPRETED:
        print(
            "Nothing can be compiled without Triton, or with TRITON_INTERPRET=1.", file=sys.stderr
        )
        return 1
    targets = [int(target) for target in options.targets.split(",")]
    start = time.perf_counter()
    summary: dict[str, Any] = {"triton": TRITON_VERSION, "builds": 0, "bad": 0}
    for spec, build in builds(options.shape, targets, options.cache, options.kernel):
        summary["builds"] += 1
        summary["bad"] += not build.is_good
        if not options.quiet or not build.is_good:
            print(
                f"{'good' if build.is_good else 'BAD '} sm_{build.target:<3}"
                f" {build.registers:3} registers {build.spilled:4} spilled"
                f" {build.shared_memory:6} shared {'mma' if build.has_matrix_products else '   '}"
                f" {build.seconds:5.1f} s  {described(spec)}"
                f"{issue(build)}",
                flush=True,
            )
    summary["seconds"] = round(time.perf_counter() - start, 1)
    print(json.dumps(summary))
    return 1 if summary["bad"] else 0


def default_cache() -> Path:
    return Path(tempfile.gettempdir()) / "inglenook-compile-matrix"


if __name__ == "__main__":
    raise SystemExit(main())
