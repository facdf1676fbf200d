"""How the tensors of two packages are called in one kind of file."""

import pytest

from app.documents.embedding.bert import OF_LAYER, OF_MODEL, theirs_by_ours

MODEL = [f"model {number}" for number in range(len(OF_MODEL))]
LAYER = [f"part {number}" for number in range(len(OF_LAYER))]


def test_each_tensor_of_each_layer_has_a_weight_and_a_bias() -> None:
    names = theirs_by_ours(2, MODEL, LAYER, "{layer}/{part}/{kind}", "w", "b")
    assert len(names) == len(set(names.values())) == 5 + 2 * 8 * 2
    assert names["token_embd_norm.bias"] == "model 4"
    assert names["blk.0.attn_q.weight"] == "0/part 0/w"
    assert names["blk.1.layer_output_norm.bias"] == "1/part 7/b"


def test_a_name_too_few_is_no_model() -> None:
    with pytest.raises(ValueError):
        theirs_by_ours(1, MODEL, LAYER[1:], "{layer}/{part}/{kind}", "w", "b")
