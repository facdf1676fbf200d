"""Rows of a packed table."""

import pytest
import torch

from kernels.choice import interpreted
from kernels.quant.embedding import embedding, embedding_reference
from tests.kernels.memory import Memory
from tests.kernels.quant.packed import TYPES, odd_columns, packed

TOKENS = torch.tensor([6, 0, 6, 3])


@pytest.mark.parametrize("type_name", TYPES)
def test_rows_are_those_of_the_tokens(memory: Memory, type_name: str) -> None:
    table = packed(type_name, 7, odd_columns(type_name))
    wanted = table.exact[TOKENS].to(torch.bfloat16)
    assert torch.equal(embedding_reference(TOKENS, table.matrix, torch.bfloat16), wanted)
    with interpreted():
        rows = embedding(TOKENS, table.matrix, torch.bfloat16)
    assert torch.equal(rows, wanted)


def test_no_token_has_no_row(memory: Memory) -> None:
    with interpreted():
        rows = embedding(TOKENS[:0], packed("Q4_K", 7, 256).matrix, torch.float32)
    assert rows.shape == (0, 256)


def test_a_plain_table_is_read_as_it_is() -> None:
    table = torch.arange(12.0).view(4, 3)
    rows = embedding(torch.tensor([2, 0]), table, torch.bfloat16)
    assert rows.tolist() == [[6, 7, 8], [0, 1, 2]]
    assert rows.dtype == torch.bfloat16
