"""A BERT in plain numpy, from its safetensors: the specification of the converted file."""

import json
import struct
import unicodedata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[np.float32]]


def load_weights(path: Path) -> Weights:
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    weights = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, end = (8 + length + offset for offset in entry["data_offsets"])
            weights[name] = np.frombuffer(data[first:end], np.float32).reshape(entry["shape"])
    return weights


def token_ids(words: dict[str, int], text: str) -> list[int]:
    """WordPiece as BERT has it, in small letters."""
    ids = [words["[CLS]"]]
    for word in _words(text):
        ids += _pieces(words, word)
    return [*ids, words["[SEP]"]]


def _words(text: str) -> list[str]:
    apart = ""
    for sign in unicodedata.normalize("NFD", text.lower()):
        kind = unicodedata.category(sign)
        if kind == "Mn" or sign in "\0\ufffd" or kind in ("Cc", "Cf") and not sign.isspace():
            continue
        is_alone = (
            kind.startswith("P")
            or sign.isascii()
            and not sign.isalnum()
            and not sign.isspace()
            or "\u4e00" <= sign <= "\u9fff"
        )
        apart += f" {sign} " if is_alone else sign
    return apart.split()


def _pieces(words: dict[str, int], word: str) -> list[int]:
    ids, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = word[start:end] if start == 0 else "##" + word[start:end]
            if piece in words:
                ids.append(words[piece])
                start = end
                break
        else:
            return [words["[UNK]"]]
    return ids


def embed(weights: Weights, ids: list[int], num_heads: int, epsilon: float) -> NDArray[np.float32]:
    """The mean of the last layer's vectors, of length 1."""

    def dense(x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        apart = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)
        return apart * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    x = weights["embeddings.word_embeddings.weight"][ids]
    x = x + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    num_layers = sum(name.endswith("attention.self.query.weight") for name in weights)
    for layer in range(num_layers):
        place = f"encoder.layer.{layer}"
        q, k, v = (
            dense(x, f"{place}.attention.self.{name}")
            .reshape(len(ids), num_heads, -1)
            .transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        chances = np.exp(scores - scores.max(-1, keepdims=True))
        seen = (chances / chances.sum(-1, keepdims=True) @ v).transpose(1, 0, 2)
        out = dense(seen.reshape(len(ids), -1), f"{place}.attention.output.dense")
        x = norm(x + out, f"{place}.attention.output.LayerNorm")
        inner = dense(x, f"{place}.intermediate.dense")
        out = dense(inner * 0.5 * (1 + _erf(inner / np.sqrt(2))), f"{place}.output.dense")
        x = norm(x + out, f"{place}.output.LayerNorm")
    mean = x.mean(0)
    return (mean / np.linalg.norm(mean)).astype(np.float32)


def _erf(x: NDArray[np.float32]) -> NDArray[np.float32]:
    # Abramowitz and Stegun, 7.1.26: right to 1.5e-7.
    t = 1 / (1 + 0.3275911 * np.abs(x))
    factors = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    poly = np.zeros_like(t)
    for factor in factors:
        poly = (poly + np.float32(factor)) * t
    return np.sign(x) * (1 - poly * np.exp(-x * x))
