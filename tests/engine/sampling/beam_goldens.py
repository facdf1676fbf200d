"""Beam searches of transformers, to compare ours with: run by hand, where it is installed.

    python -m tests.engine.sampling.beam_goldens STARTER.gguf > tests/engine/sampling/beams.json

The tiny model of the tests and the starter model, both with float32 weights and KV.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

SEARCHES: list[dict[str, Any]] = [
    {"num_beams": 1},
    {"num_beams": 3},
    {"num_beams": 5},
    {"num_beams": 5, "length_penalty": 0.0},
    {"num_beams": 3, "length_penalty": 2.0, "early_stopping": True},
    {"num_beams": 3, "length_penalty": -1.0, "early_stopping": "never"},
    {"num_beams": 5, "length_penalty": 1.5, "early_stopping": "never"},
]
TINY_PROMPTS = [[1, 260, 261, 262], [1, *range(10, 40)], [1, 100, 263, 90, 5, 264]]
TEXTS = [
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>user\nName a colour.<|im_end|>\n<|im_start|>assistant\n",
]
MAX_TOKENS = 12


def main(starter: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    results: dict[str, Any] = {"transformers": transformers.__version__, "tiny": [], "starter": []}
    with tempfile.TemporaryDirectory() as folder:
        tiny = _tiny(Path(folder) / "tiny.gguf")
    for prompt in TINY_PROMPTS:
        results["tiny"] += [_search(tiny, prompt, search, 2) for search in SEARCHES]
    named = {"pretrained_model_name_or_path": starter.parent, "gguf_file": starter.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(**named, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(**named)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    for text in TEXTS:
        prompt = tokenizer(text, add_special_tokens=False).input_ids
        results["starter"] += [_search(model, prompt, search, end) for search in SEARCHES[:3]]
    print(json.dumps(results))


def _search(model: Any, prompt: list[int], search: dict[str, Any], end: int) -> dict[str, Any]:
    import torch

    num = search["num_beams"]
    found = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        max_new_tokens=MAX_TOKENS,
        num_return_sequences=num,
        do_sample=False,
        eos_token_id=end,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_scores=True,
        **search,
    )
    answers = []
    for number, sequence in enumerate(found.sequences.tolist()):
        token_ids = sequence[len(prompt) :]
        if end in token_ids:
            token_ids = token_ids[: token_ids.index(end) + 1]
        answers.append({"token_ids": token_ids, "score": _score(found, model, number, search)})
    return {"prompt": prompt, "end": end, **search, "answers": answers}


def _score(found: Any, model: Any, number: int, search: dict[str, Any]) -> float | None:
    # With one beam transformers searches greedily, and scores nothing.
    return float(found.sequences_scores[number]) if search["num_beams"] > 1 else None


def _tiny(path: Path) -> Any:
    import gguf
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from tests.engine.backends.llama_cpp.tiny_model import HEADS, LAYERS, WIDTH, write_tiny_model

    write_tiny_model(path)
    tensors = {each.name: each.data for each in gguf.GGUFReader(path).tensors}
    config = LlamaConfig(
        vocab_size=len(tensors["token_embd.weight"]),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config).eval()
    names = {
        "attn_norm": "input_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    state = {
        "model.embed_tokens.weight": tensors["token_embd.weight"],
        "model.norm.weight": tensors["output_norm.weight"],
    }
    for layer in range(LAYERS):
        for ours, theirs in names.items():
            value = tensors[f"blk.{layer}.{ours}.weight"]
            if ours in ("attn_q", "attn_k"):
                # llama.cpp turns neighbours, transformers the two halves of a head.
                value = value.reshape(HEADS, WIDTH // HEADS // 2, 2, WIDTH).swapaxes(1, 2)
                value = value.reshape(WIDTH, WIDTH)
            state[f"model.layers.{layer}.{theirs}.weight"] = value
    model.load_state_dict(
        {name: torch.tensor(value) for name, value in state.items()}, strict=False
    )
    model.tie_weights()
    return model


if __name__ == "__main__":
    main(Path(sys.argv[1]))
