"""Tiny models with random weights, one of each kind, made by transformers' own classes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

WORDS = 300
CONTEXT = 256
WINDOW = 16

_SIZES: dict[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_GEMMA = {"head_dim": 24, "query_pre_attn_scalar": 20, "sliding_window": WINDOW}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_YARN = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}
_LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "short_factor": [1.0 + place / 10 for place in range(6)],
    "long_factor": [2.0 + place for place in range(6)],
}


@dataclass(frozen=True)
class TinyModel:
    """`name` is that of transformers' configuration and model, without their endings."""

    name: str
    changes: dict[str, Any]
    config: str = ""

    def make(self, **more: Any) -> Any:
        config = getattr(transformers, f"{self.config or self.name}Config")
        model = getattr(transformers, f"{self.name}ForCausalLM")(
            config(**{**_SIZES, **self.changes, **more})
        )
        torch.manual_seed(0)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                is_norm = "norm" in name
                middle = 1.0 if is_norm and "Gemma" not in self.name else 0.0
                # With larger weights a wrong window or a missing scale shows in the logits.
                weight.copy_(middle + torch.randn_like(weight) * (0.3 if is_norm else 0.1))
        return model.eval()


KINDS = {
    "llama": TinyModel("Llama", {}),
    "llama with llama3 rope": TinyModel("Llama", {"rope_parameters": _LLAMA3}),
    "llama with a bias": TinyModel("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama with its own head": TinyModel("Llama", {"tie_word_embeddings": True}),
    "mistral": TinyModel("Mistral", {"sliding_window": WINDOW}),
    "qwen2": TinyModel("Qwen2", {}),
    "qwen3": TinyModel("Qwen3", {"head_dim": 32}),
    "qwen3 with yarn": TinyModel("Qwen3", {"head_dim": 32, "rope_parameters": _YARN}),
    "gemma2": TinyModel("Gemma2", _GEMMA),
    "gemma3": TinyModel(
        "Gemma3",
        {
            **_GEMMA,
            "num_hidden_layers": 7,
            "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        },
        config="Gemma3Text",
    ),
    "phi3": TinyModel("Phi3", {"sliding_window": WINDOW}),
    "phi4": TinyModel(
        "Phi3",
        {
            "partial_rotary_factor": 0.75,
            "max_position_embeddings": 2 * CONTEXT,
            "original_max_position_embeddings": CONTEXT,
            "rope_parameters": _LONGROPE,
        },
    ),
    "granite": TinyModel(
        "Granite",
        {
            "embedding_multiplier": 3.0,
            "logits_scaling": 0.5,
            "residual_multiplier": 0.3,
            "attention_multiplier": 0.1,
        },
    ),
}


def save_tiny(folder: Path, kind: str, **more: Any) -> Any:
    """The model, which lies in the folder with a tokenizer from now on."""
    model = KINDS[kind].make(**more)
    model.save_pretrained(folder)
    tiny_tokenizer(WORDS).save_pretrained(folder)
    return model


def tiny_tokenizer(num_words: int, change: Callable[[Tokenizer], None] = lambda made: None) -> Any:
    """Bytes and a few pairs of them, as GPT-2 has them, and three control tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["<pad>", "<s>", "</s>", *letters]
    pairs = [(one, other) for one in "abcdefghij" for other in "abcd"][: num_words - len(names)]
    names += [one + other for one, other in pairs]
    made = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, pairs))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    change(made)
    found = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    found.chat_template = json.loads('"{{ messages[0].content }}"')
    return found
