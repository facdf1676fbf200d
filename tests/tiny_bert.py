"""A tiny BERT with random weights, as the package of MiniLM has one, and as that of e5 has it."""

import json
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.documents.embedding.e5 import MAGIC
from engine.backends.llama_cpp.gguf_writer import BLOCK

WIDTH, LAYERS, HEADS, INNER, POSITIONS = 64, 2, 2, 128, 96
EPSILON = 1e-12
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("the", "house", "river", "bread", "war", "of", "##es", "##ing", ".", ",", "?"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
)


def write_tiny_package(folder: Path, seed: int = 1) -> Path:
    """What `minilm.convert` takes."""
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    config = {
        "num_hidden_layers": LAYERS,
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "max_position_embeddings": POSITIONS,
        "layer_norm_eps": EPSILON,
    }
    (folder / "config.json").write_text(json.dumps(config))
    entries, data = {}, b""
    for name, values in _weights(seed, len(WORDS)).items():
        entries[name] = {
            "dtype": "F32",
            "shape": values.shape,
            "data_offsets": [len(data), len(data) + values.nbytes],
        }
        data += values.tobytes()
    head = json.dumps(entries).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)
    return folder


def _weights(seed: int, num_words: int) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> NDArray[np.float32]:
        return rng.normal(0, 0.1, shape).astype(np.float32)

    def norm(name: str) -> dict[str, NDArray[np.float32]]:
        return {f"{name}.weight": 1 + random(WIDTH), f"{name}.bias": random(WIDTH)}

    def dense(name: str, num_out: int, num_in: int) -> dict[str, NDArray[np.float32]]:
        return {f"{name}.weight": random(num_out, num_in), f"{name}.bias": random(num_out)}

    weights = {
        "embeddings.word_embeddings.weight": random(num_words, WIDTH),
        "embeddings.position_embeddings.weight": random(POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": random(2, WIDTH),
        **norm("embeddings.LayerNorm"),
    }
    for layer in range(LAYERS):
        place = f"encoder.layer.{layer}"
        for name in ("query", "key", "value"):
            weights |= dense(f"{place}.attention.self.{name}", WIDTH, WIDTH)
        weights |= dense(f"{place}.attention.output.dense", WIDTH, WIDTH)
        weights |= norm(f"{place}.attention.output.LayerNorm")
        weights |= dense(f"{place}.intermediate.dense", INNER, WIDTH)
        weights |= dense(f"{place}.output.dense", WIDTH, INNER)
        weights |= norm(f"{place}.output.LayerNorm")
    return weights


PIECES = ("<s>", "<pad>", "</s>", "<unk>", "\u2581", "\u2581the", "\u2581house", *LETTERS, ".", ":")
NUM_UNUSED = 3


def write_tiny_e5(path: Path, seed: int = 1) -> Path:
    """What `e5.convert` takes: weights in ggml's blocks of 4 bits."""
    num_words = len(PIECES) + NUM_UNUSED
    blob = [piece.encode() for piece in PIECES]
    offsets = np.cumsum([0, *map(len, blob)])
    head = MAGIC + struct.pack(
        "<8ifi", 1, WIDTH, LAYERS, HEADS, INNER, num_words, POSITIONS, 2, EPSILON, BLOCK
    )
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, int(offsets[-1]))
    head += offsets.astype("<u4").tobytes()
    head += np.array([-float(n) for n in range(len(PIECES))], "<f4").tobytes()
    head += b"".join(blob)
    # A table of one character: K becomes k.
    table = struct.pack("<IBI", 0x4B, 1, 0x6B)
    head += struct.pack("<iI", 1, len(table)) + table
    tensors = _as_e5(_weights(seed, num_words))
    size = len(head) + 4 + sum(2 + len(name) + 21 for name in tensors)
    head += struct.pack("<i", len(tensors))
    body = b""
    for name, (num_numbers, kind, data) in tensors.items():
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", kind, num_numbers, size + len(body), len(data))
        body += data
    path.write_bytes(head + body)
    return path


def _as_e5(weights: dict[str, NDArray[np.float32]]) -> dict[str, tuple[int, int, bytes]]:
    names = {
        "embeddings.word_embeddings.weight": "emb.word",
        "embeddings.position_embeddings.weight": "emb.pos",
        "embeddings.token_type_embeddings.weight": "emb.type",
        "embeddings.LayerNorm.weight": "emb.ln.w",
        "embeddings.LayerNorm.bias": "emb.ln.b",
    }
    parts = {
        "attention.self.query": "q",
        "attention.self.key": "k",
        "attention.self.value": "v",
        "attention.output.dense": "ao",
        "attention.output.LayerNorm": "aln",
        "intermediate.dense": "fi",
        "output.dense": "fo",
        "output.LayerNorm": "oln",
    }
    for layer in range(LAYERS):
        for theirs, ours in parts.items():
            for kind in ("weight", "bias"):
                names[f"encoder.layer.{layer}.{theirs}.{kind}"] = f"l{layer}.{ours}.{kind[0]}"
    found = {}
    for name, values in weights.items():
        is_rounded = values.ndim == 2 and names[name] not in ("emb.pos", "emb.type")
        data = q4_blocks(values) if is_rounded else values.tobytes()
        found[names[name]] = (values.size, int(is_rounded), data)
    return found


def q4_blocks(values: NDArray[np.float32]) -> bytes:
    """ggml's Q4_0: a scale, and two numbers a byte, those of the second half above."""
    blocks = values.reshape(-1, BLOCK)
    scales = (np.abs(blocks).max(1, keepdims=True) / 7).astype(np.float16)
    steps = np.clip(np.rint(blocks / scales.astype(np.float32)) + 8, 0, 15).astype(np.uint8)
    both = steps[:, : BLOCK // 2] | steps[:, BLOCK // 2 :] << 4
    return np.concatenate([scales.view(np.uint8), both], axis=1).tobytes()
