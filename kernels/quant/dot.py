"""Four products of small whole numbers in one instruction."""

from typing import Any

from kernels.language import INTERPRETED, jit, tensor, tl

if INTERPRETED:

    @jit
    def dp4a(a: tensor, b: tensor, c: tensor) -> Any:
        """c plus the products of the four signed bytes of a and of b; int32 of one shape.

        The twin of the instruction below, which the interpreter does not know.
        """
        total = c
        for i in tl.static_range(4):
            total += ((a << (24 - 8 * i)) >> 24) * ((b << (24 - 8 * i)) >> 24)
        return total

else:

    @jit
    def dp4a(a: tensor, b: tensor, c: tensor) -> Any:
        """c plus the products of the four signed bytes of a and of b; int32 of one shape."""
        return tl.inline_asm_elementwise(
            "dp4a.s32.s32 $0, $1, $2, $3;",
            "=r,r,r,r",
            [a, b, c],
            dtype=tl.int32,
            is_pure=True,
            pack=1,
        )
