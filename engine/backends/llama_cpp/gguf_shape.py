"""What a model file needs and how much of it is read for each token, from its header alone."""

from collections.abc import Iterable, Sequence

from engine.backends.llama_cpp.gguf_header import BLOCKS, GGUFHeader, Tensor
from engine.backends.llama_cpp.kv_type import KVShape
from engine.backends.llama_cpp.model_shape import ContextShape, ModelShape

_WORDS = "token_embd.weight"
_OUTPUT = "output.weight"
# What layers have whose state is one whole, or whose K and V are not kept as they are.
_OTHER_STATE = (".ssm.", ".shortconv.", ".wkv.", ".time_mix", ".kv_lora_rank")


def shape_of(headers: Sequence[GGUFHeader]) -> ModelShape:
    """Of all files of a model, the first of which has its facts."""
    facts = headers[0]
    tensors = [tensor for header in headers for tensor in header.tensors]
    names = {tensor.name for tensor in tensors}
    # Where the table of words is the last layer as well, it is read whole.
    read = [
        (tensor, _share(facts, tensor))
        for tensor in tensors
        if tensor.name != _WORDS or _OUTPUT not in names
    ]
    words = next((tensor for tensor in tensors if tensor.name == _WORDS), None)
    width = facts.own("embedding_length")
    # The table says it exactly; a vocabulary may be padded.
    num_words = words.num_numbers // max(1, width) if words else 0
    return ModelShape(
        num_bytes=sum(tensor.num_bytes or 0 for tensor in tensors),
        num_parameters=sum(tensor.num_numbers for tensor in tensors),
        multiplied=_multiplied(read),
        read_bytes=round(sum((tensor.num_bytes or 0) * share for tensor, share in read)),
        num_layers=facts.own("block_count"),
        trained_context=facts.own("context_length"),
        context=ContextShape(
            width=width,
            widest_layer=facts.own("feed_forward_length") or 4 * width,
            num_words=num_words or facts.lengths.get("tokenizer.ggml.tokens", 0),
            window_tokens=facts.own("attention.sliding_window"),
            kv=_kv_shape(facts, width),
        ),
    )


def _multiplied(read: Iterable[tuple[Tensor, float]]) -> dict[str, int]:
    counted: dict[str, float] = {}
    for tensor, share in read:
        if len(tensor.shape) > 1:
            kind = BLOCKS[tensor.kind].name if tensor.kind in BLOCKS else "F32"
            counted[kind] = counted.get(kind, 0.0) + tensor.num_numbers * share
    return {kind: round(number) for kind, number in counted.items()}


def _share(facts: GGUFHeader, tensor: Tensor) -> float:
    """How much of a tensor one token reads: of experts, only those that are asked."""
    num_experts, num_used = facts.own("expert_count"), facts.own("expert_used_count")
    is_experts = "_exps." in tensor.name and num_experts > 0
    return num_used / num_experts if is_experts else 1.0


def _kv_shape(facts: GGUFHeader, width: int) -> KVShape:
    layers = facts.own("block_count")
    num_heads = facts.own("attention.head_count")
    found = facts.values.get(f"{facts.architecture}.attention.head_count_kv")
    if isinstance(found, tuple):
        num_kv_heads = int(sum(found))
    else:
        num_kv_heads = layers * (int(found) if isinstance(found, int) and found else num_heads)
    head_size = width // max(1, num_heads)
    key = facts.own("attention.key_length") or head_size
    value = facts.own("attention.value_length") or head_size
    windows = (facts.own(f"attention.{name}_length_swa") for name in ("key", "value"))
    sizes = frozenset([key, value, *(size for size in windows if size)])
    is_exact = not any(mark in name for name in facts.values for mark in _OTHER_STATE)
    return KVShape(num_kv_heads * (key + value), sizes, is_exact)
