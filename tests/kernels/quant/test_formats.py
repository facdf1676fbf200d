"""What is known of the packed types."""

import gguf
import pytest

from kernels.quant.formats import FORMATS, format_of, unpacked_notice


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_have_the_size_that_gguf_says(name: str) -> None:
    columns, num_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    assert FORMATS[name].block_columns == columns
    assert FORMATS[name].block_bytes == num_bytes
    assert FORMATS[name].bits_per_weight == 8 * num_bytes / columns


@pytest.mark.parametrize("name", FORMATS)
def test_planes_cover_a_block_without_a_gap(name: str) -> None:
    end = 0
    for plane in FORMATS[name].planes:
        assert plane.start == end
        end += plane.num_bytes
    assert end == FORMATS[name].block_bytes


@pytest.mark.parametrize("name", FORMATS)
def test_words_of_a_row_start_at_multiples_of_sixteen_bytes(name: str) -> None:
    low = next(plane for plane in FORMATS[name].planes if plane.name == "low")
    assert low.num_bytes % 16 == 0


def test_a_row_of_part_of_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="256 columns in a block, and 576 columns"):
        format_of("Q4_K").row_bytes(576)


def test_another_type_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="IQ4_XS is none of the packed types: Q8_0"):
        format_of("IQ4_XS")


def test_weights_that_become_bfloat16_are_told_with_their_size() -> None:
    notice = unpacked_notice({"Q3_K": 1_000_000, "IQ4_XS": 500_000, "Q4_K": 7, "F32": 9})
    assert notice is not None
    assert "1,500,000 weights of this file are of type IQ4_XS, Q3_K" in notice
    assert "3.0 MB as bfloat16" in notice


def test_nothing_is_told_where_all_stays_packed() -> None:
    assert unpacked_notice({"Q4_K": 7, "F32": 9, "BF16": 3, "Q2_K": 0}) is None
