"""Qwen2 and Qwen2.5: Llama with a bias on Q, K and V, which is read wherever a file has one."""

from engine.backends.torch.architecture import Architecture

QWEN2 = Architecture(classes=("Qwen2ForCausalLM",), gguf_names=("qwen2",))
