"""The shapes of models that are compiled ahead: each size of head, group and option that counts."""

from dataclasses import replace

import torch

from kernels.quant.formats import FORMATS
from kernels.specs import ModelShape

SMOLLM2 = ModelShape(
    name="smollm2-135m",
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    hidden=576,
    feed_forward=1536,
    vocab=49152,
    rotary_dims=(64,),
    weight_types=("Q4_1", "Q8_0", "Q5_0"),
)

LLAMA_8B = ModelShape(
    name="llama-3.1-8b",
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    hidden=4096,
    feed_forward=14336,
    vocab=128256,
    rotary_dims=(128,),
    weight_types=tuple(FORMATS),
)

QWEN3 = ModelShape(
    name="qwen3-1.7b",
    num_heads=16,
    num_kv_heads=8,
    head_dim=128,
    hidden=2048,
    feed_forward=6144,
    vocab=151936,
    rotary_dims=(128,),
    has_head_norms=True,
)

GEMMA2 = ModelShape(
    name="gemma-2-2b",
    num_heads=8,
    num_kv_heads=4,
    head_dim=256,
    hidden=2304,
    feed_forward=9216,
    vocab=256000,
    rotary_dims=(256,),
    windows=(0, 4096),
    softcap=50.0,
    final_softcap=30.0,
    activation="gelu_tanh",
    norm_adds_one=True,
)

GEMMA3 = ModelShape(
    name="gemma-3-1b",
    num_heads=4,
    num_kv_heads=1,
    head_dim=256,
    hidden=1152,
    feed_forward=6912,
    vocab=262144,
    rotary_dims=(256,),
    windows=(0, 512),
    activation="gelu_tanh",
    norm_adds_one=True,
    has_head_norms=True,
)

PHI3 = ModelShape(
    name="phi-3-mini",
    num_heads=32,
    num_kv_heads=32,
    head_dim=96,
    hidden=3072,
    feed_forward=8192,
    vocab=32064,
    rotary_dims=(96,),
    windows=(2047,),
)

SMOLLM3 = ModelShape(
    name="smollm3-3b",
    num_heads=16,
    num_kv_heads=4,
    head_dim=128,
    hidden=2048,
    feed_forward=11008,
    vocab=128256,
    rotary_dims=(128, 0),
)

# 80 numbers per head of which 32 turn, one KV head for all, neighbours turning together.
ODD = ModelShape(
    name="odd",
    num_heads=8,
    num_kv_heads=1,
    head_dim=80,
    hidden=2560,
    feed_forward=10240,
    vocab=51200,
    rotary_dims=(32,),
    is_interleaved=True,
    activation="gelu",
)

SHAPES: tuple[ModelShape, ...] = (
    SMOLLM2,
    LLAMA_8B,
    QWEN3,
    GEMMA2,
    GEMMA3,
    PHI3,
    SMOLLM3,
    ODD,
    *(
        replace(shape, name=f"{shape.name}-int8", kv_dtype=torch.int8, weight_types=())
        for shape in (SMOLLM2, LLAMA_8B, GEMMA2, PHI3)
    ),
    replace(
        LLAMA_8B,
        name="llama-3.1-8b-fp16",
        dtype=torch.float16,
        kv_dtype=torch.float16,
        weight_types=("Q4_0",),
    ),
    *(
        replace(
            shape,
            name=f"{shape.name}-fp32",
            dtype=torch.float32,
            kv_dtype=torch.float32,
            weight_types=(),
        )
        for shape in (SMOLLM2, LLAMA_8B, GEMMA3)
    ),
)
