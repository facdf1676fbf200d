"""Llama 2 and 3, Mistral, SmolLM2, TinyLlama and what else is built like them."""

from engine.backends.torch.architecture import Architecture

LLAMA = Architecture(
    classes=("LlamaForCausalLM", "MistralForCausalLM"),
    gguf_names=("llama",),
    interleaves_in_gguf=True,
)
