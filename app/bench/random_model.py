"""Model files with random weights, of any size: what only their measures matter for.

The form is that of ggml's docs/gguf.md. Weights are random bytes whose scales are small, so that
nothing in them is infinite; what such a model writes means nothing.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 32
NUM_WORDS = 8192
HEAD_SIZE = 64
_U32, _F32, _STRING, _ARRAY, _I32 = 4, 6, 8, 9, 5
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_SCALE = np.float16(0.002)


@dataclass(frozen=True, slots=True)
class BlockType:
    """`scales`: where in a block a number of two bytes stands that must be small."""

    kind: int
    num_numbers: int
    num_bytes: int
    scales: tuple[int, ...]


TYPES: Final = {
    "F16": BlockType(1, 1, 2, (0,)),
    "Q4_0": BlockType(2, 32, 18, (0,)),
    "Q8_0": BlockType(8, 32, 34, (0,)),
    "Q4_K": BlockType(12, 256, 144, (0, 2)),
    "Q6_K": BlockType(14, 256, 210, (208,)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomModel:
    """A Llama of these measures. `width` is a multiple of 256; heads share K and V in fours."""

    name: str
    type_name: str
    width: int
    layers: int

    @property
    def feed_forward(self) -> int:
        return 3 * self.width

    def tensors(self) -> Iterator[tuple[str, tuple[int, ...], str]]:
        """Name, sizes (the row first) and type of each."""
        width, kv = self.width, self.width // 4
        yield "token_embd.weight", (width, NUM_WORDS), self.type_name
        for layer in range(self.layers):
            block = f"blk.{layer}"
            yield f"{block}.attn_norm.weight", (width,), "F32"
            yield f"{block}.ffn_norm.weight", (width,), "F32"
            for name, size in (("q", width), ("k", kv), ("v", kv), ("output", width)):
                yield f"{block}.attn_{name}.weight", (width, size), self.type_name
            for name in ("gate", "up"):
                yield f"{block}.ffn_{name}.weight", (width, self.feed_forward), self.type_name
            yield f"{block}.ffn_down.weight", (self.feed_forward, width), self.type_name
        yield "output_norm.weight", (width,), "F32"

    def write(self, path: Path) -> Path:
        tensors = list(self.tensors())
        with path.open("wb") as file:
            entries = [_entry(key, kind, value) for key, kind, value in self._facts()]
            entries += _vocabulary()
            file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)))
            file.write(b"".join(entries))
            offset = 0
            for name, sizes, type_name in tensors:
                kind = 0 if type_name == "F32" else TYPES[type_name].kind
                file.write(_text(name) + struct.pack("<I", len(sizes)))
                file.write(struct.pack(f"<{len(sizes)}QIQ", *sizes, kind, offset))
                offset += _padded(_num_bytes(sizes, type_name))
            _pad(file)
            generator = np.random.default_rng(0)
            for _, sizes, type_name in tensors:
                file.write(_content(sizes, type_name, generator))
                _pad(file)
        return path

    def _facts(self) -> list[tuple[str, int, int | float | str]]:
        heads = self.width // HEAD_SIZE
        return [
            ("general.architecture", _STRING, "llama"),
            ("general.name", _STRING, self.name),
            ("llama.context_length", _U32, 8192),
            ("llama.embedding_length", _U32, self.width),
            ("llama.block_count", _U32, self.layers),
            ("llama.feed_forward_length", _U32, self.feed_forward),
            ("llama.attention.head_count", _U32, heads),
            ("llama.attention.head_count_kv", _U32, heads // 4),
            ("llama.attention.layer_norm_rms_epsilon", _F32, 1e-5),
        ]


def _vocabulary() -> list[bytes]:
    """Bytes and made-up words, as a sentencepiece vocabulary has them."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{value:02X}>" for value in range(256))]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *([_BYTE] * 256)]
    more = [f"w{number}" for number in range(NUM_WORDS - len(words))]
    kinds += [_NORMAL] * len(more)
    words += more
    tokens = struct.pack("<IQ", _STRING, len(words)) + b"".join(map(_text, words))
    scores = struct.pack("<IQ", _F32, len(words)) + bytes(4 * len(words))
    types = struct.pack(f"<IQ{len(kinds)}i", _I32, len(kinds), *kinds)
    return [
        _entry("tokenizer.ggml.model", _STRING, "llama"),
        *(
            _text(f"tokenizer.ggml.{name}") + struct.pack("<I", _ARRAY) + content
            for name, content in (("tokens", tokens), ("scores", scores), ("token_type", types))
        ),
        _entry("tokenizer.ggml.bos_token_id", _U32, 1),
        _entry("tokenizer.ggml.eos_token_id", _U32, 2),
    ]


def _entry(key: str, kind: int, value: int | float | str) -> bytes:
    if isinstance(value, str):
        content = _text(value)
    else:
        content = struct.pack("<f" if kind == _F32 else "<I", value)
    return _text(key) + struct.pack("<I", kind) + content


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _num_bytes(sizes: tuple[int, ...], type_name: str) -> int:
    numbers = int(np.prod(sizes))
    if type_name == "F32":
        return 4 * numbers
    block = TYPES[type_name]
    return numbers // block.num_numbers * block.num_bytes


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _pad(file: BinaryIO) -> None:
    file.write(bytes(_padded(file.tell()) - file.tell()))


def _content(
    sizes: tuple[int, ...], type_name: str, generator: np.random.Generator
) -> bytes | memoryview:
    if type_name == "F32":
        return np.ones(sizes, np.float32).tobytes()
    block = TYPES[type_name]
    num_blocks = int(np.prod(sizes)) // block.num_numbers
    if type_name == "F16":
        return (generator.standard_normal(num_blocks, np.float32) / 50).astype(np.float16).tobytes()
    blocks: NDArray[np.uint8] = generator.integers(
        0, 256, (num_blocks, block.num_bytes), dtype=np.uint8
    )
    small = np.frombuffer(_SCALE.tobytes(), np.uint8)
    for at in block.scales:
        blocks[:, at : at + 2] = small
    return blocks.tobytes()
