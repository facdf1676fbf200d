"""How instructions for each weight are counted."""

import pytest
import torch

from kernels.card import Card
from kernels.launch import Spec, written_down
from kernels.quant.budget import allowed_instructions, inner_loops, issued_instructions
from kernels.quant.matmul import matmul
from kernels.quant.matvec import matvec
from kernels.quant.planes import QuantizedMatrix

# An outer loop around an inner one with four products, and the last jump, to itself.
CODE = """
.L_x_0:
        /*0010*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0020*/                   LDG.E.128 R4, [R2.64] ;
        /*0030*/              @!P0 IDP.4A.S8.S8 R8, R4, R5, R8 ;
        /*0040*/                   IDP.4A.S8.S8 R8, R4, R5, R8 ;
        /*0050*/                   IDP.4A.S8.S8 R8, R4, R5, R8 ;
        /*0060*/                   IDP.4A.S8.S8 R8, R4, R5, R8 ;
        /*0070*/              @!P1 BRA `(.L_x_1) ;
        /*0080*/               @P2 BRA `(.L_x_0) ;
        /*0090*/                   EXIT ;
.L_x_2:
        /*00a0*/                   BRA `(.L_x_2);
        /*00b0*/                   NOP;
"""


def spec_of(num_tokens: int) -> Spec:
    weight = QuantizedMatrix.empty("Q4_0", 32, 64, "meta")
    x = torch.empty(num_tokens, 64, device="meta")
    with written_down(Card.HOPPER) as launches:
        (matvec if num_tokens <= 8 else matmul)(x, weight)
    return launches[-1].spec


@pytest.mark.parametrize("jump", ["BRA", "BRA.U"])
def test_only_the_inner_loop_is_counted(jump: str) -> None:
    """Cards since Blackwell jump by another name."""
    code = CODE.replace("@!P1 BRA", f"@!P1 {jump}")
    assert inner_loops(code) == [["LDG.E.128", *["IDP.4A.S8.S8"] * 4, jump]]


@pytest.mark.parametrize(("num_tokens", "issued"), [(1, 6 / 16), (3, 6 / 4)])
def test_four_weights_need_a_product_for_each_token(num_tokens: int, issued: float) -> None:
    assert issued_instructions(spec_of(num_tokens), CODE) == issued


def test_other_kernels_are_not_counted() -> None:
    assert issued_instructions(spec_of(9), CODE) is None


def test_a_loop_without_products_is_no_loop_of_a_matvec() -> None:
    with pytest.raises(ValueError, match="no loop with products"):
        issued_instructions(spec_of(1), CODE.replace("IDP.4A", "IMAD"))


def test_a_wider_weight_and_a_slower_memory_allow_more() -> None:
    assert allowed_instructions("Q4_0", 90) == pytest.approx(4.4, abs=0.1)
    assert allowed_instructions("Q6_K", 90) == pytest.approx(6.3, abs=0.1)
    assert allowed_instructions("Q4_0", 86) == pytest.approx(11, abs=0.1)
