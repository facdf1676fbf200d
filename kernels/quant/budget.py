"""What a product with packed weights may cost: instructions, while the bytes of a weight come.

A card is bound by its memory only as long as it can issue what each weight needs in that time. The
machine code tells how much that is, and needs no card to tell it.
"""

import re

from kernels.launch import Spec
from kernels.quant.formats import format_of

# 128 lanes x processors x clock / 90 % of the bandwidth, of the tightest card of each capability:
# A100, RTX 3060, RTX 4090, H200, RTX 5090. From data sheets; no card was measured.
LANES_PER_BYTE = {80: 10.6, 86: 19.7, 89: 45.5, 90: 7.7, 120: 32.5}

LABEL = re.compile(r"^\s*\.?(L_x_\d+):")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)\s*(.*?);")
TARGET = re.compile(r"L_x_\d+")


def allowed_instructions(type_name: str, target: int) -> float:
    """For each weight, from one token to the next."""
    return LANES_PER_BYTE[target] * format_of(type_name).bits_per_weight / 8


def issued_instructions(spec: Spec, disassembly: str) -> float | None:
    """For each weight in the inner loop of a matvec, for all its tokens; None for other kernels.

    A loop may be unrolled: the products tell how many weights it takes, four for each token.
    """
    if spec.name != "matvec_kernel":
        return None
    slots = int(dict(spec.constants)["SLOTS"])
    loops = [
        (len(loop), products)
        for loop in inner_loops(disassembly)
        if (products := sum(name.startswith("IDP") for name in loop))
    ]
    if not loops:
        raise ValueError(f"There is no loop with products of bytes in {spec.name}.")
    return max(size * slots / (4 * products) for size, products in loops)


def inner_loops(disassembly: str) -> list[list[str]]:
    """Instructions of each loop that holds no other, by name: from a label to the jump back."""
    names: list[str] = []
    labels: dict[str, int] = {}
    jumps: list[tuple[int, int]] = []
    for line in disassembly.splitlines():
        if label := LABEL.match(line):
            labels[label[1]] = len(names)
        elif instruction := INSTRUCTION.search(line):
            goal = TARGET.search(instruction[2])
            # The last jump of a kernel goes to itself.
            is_jump = instruction[1] in ("BRA", "BRA.U")
            if is_jump and goal and labels.get(goal[0], len(names)) < len(names):
                jumps.append((labels[goal[0]], len(names)))
            names.append(instruction[1])
    return [
        names[start : end + 1]
        for start, end in jumps
        if not any(start <= other and last < end for other, last in jumps)
    ]
