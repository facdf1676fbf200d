"""The starter model from its GGUF file: against llama.cpp, and against transformers' arithmetic."""

from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray

from engine.backends.base import StepFailure
from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.step_batch import Part as LlamaPart
from engine.backends.torch.backend import TorchBackend
from engine.backends.torch.step_inputs import Part
from engine.config import EngineConfig
from tests.engine.backends.torch.torch_run import greedy, logits_of, opened

pytestmark = pytest.mark.model

PROMPTS = (
    "The capital of France is",
    "Once upon a time, there was a little girl who",
    "def fibonacci(n):\n    ",
    "Water boils at",
    "Dear Sir or Madam,\n\nI am writing to",
    "1, 2, 3, 4, 5,",
    "The three primary colours are",
    "Question: What is the tallest mountain?\nAnswer:",
    "import numpy as np\n",
    "In 1969, the first human",
    "A recipe for pancakes:\n",
    "Photosynthesis is the process by which",
    "He opened the door and",
    "The opposite of hot is",
    "To be, or not to be,",
    "<html>\n<head>",
    "The sun rises in the",
    "My favourite animal is the",
    "Bonjour, je m'appelle",
    "Once the meeting was over,",
)
NUM_NEW = 32
# llama.cpp multiplies by activations of eight bits, and we by what they are.
MOST_MEAN_KL = 5e-3
SURE_MARGIN = 0.5


@pytest.fixture(scope="module")
def backend(starter: Path) -> Iterator[TorchBackend]:
    made = opened(starter, context_tokens=2048, max_sequences=len(PROMPTS), max_running=4)
    yield made
    made.close()


@pytest.fixture(scope="module")
def exact(starter: Path) -> transformers.LlamaForCausalLM:
    """transformers' model with the weights of the file, as gguf's own functions unpack them."""
    reader = gguf.GGUFReader(starter)

    def fact(key: str) -> float:
        return float(reader.fields[f"llama.{key}"].contents())

    heads, kv_heads = int(fact("attention.head_count")), int(fact("attention.head_count_kv"))
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(reader.fields["tokenizer.ggml.tokens"].data),
            hidden_size=int(fact("embedding_length")),
            intermediate_size=int(fact("feed_forward_length")),
            num_hidden_layers=int(fact("block_count")),
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            max_position_embeddings=int(fact("context_length")),
            rms_norm_eps=fact("attention.layer_norm_rms_epsilon"),
            rope_parameters={"rope_type": "default", "rope_theta": fact("rope.freq_base")},
            tie_word_embeddings=True,
        )
    )
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, int(fact("block_count")))
    found = {}
    for tensor in reader.tensors:
        numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if ".attn_q." in tensor.name or ".attn_k." in tensor.name:
            count = heads if ".attn_q." in tensor.name else kv_heads
            halves = numbers.reshape(count, -1, 2, numbers.shape[1]).swapaxes(1, 2)
            numbers = halves.reshape(numbers.shape)
        found[tensor.name] = torch.from_numpy(np.array(numbers, order="C"))
    state = {
        name: found[f"{names.get_name(name.removesuffix('.weight'))}.weight"]
        for name in model.state_dict()
        if name != "lm_head.weight"
    }
    left = model.load_state_dict(state, strict=False)
    assert set(left.missing_keys) <= {"lm_head.weight"} and not left.unexpected_keys
    model.tie_weights()
    return model.eval()


@pytest.fixture(scope="module")
def answers(backend: TorchBackend) -> list[tuple[list[int], list[int]]]:
    """Prompts and what follows, all of them computed side by side."""
    runner = backend.model_runner
    texts = [backend.tokenizer.encode(prompt) for prompt in PROMPTS]
    known = [list(text) for text in texts]
    parts = [Part(each, 0, text, 1) for each, text in enumerate(texts)]
    for _ in range(NUM_NEW):
        rows = runner.compute(parts)
        assert not isinstance(rows, StepFailure)
        for text, row in zip(known, rows, strict=True):
            text.append(int(row.argmax()))
        parts = [Part(each, len(text) - 1, text[-1:], 1) for each, text in enumerate(known)]
    for each in range(len(PROMPTS)):
        backend.kv_memory.free(each)
    return [(text, all_[len(text) :]) for text, all_ in zip(texts, known, strict=True)]


def test_greedy_texts_are_those_of_transformers(
    answers: list[tuple[list[int], list[int]]], exact: transformers.LlamaForCausalLM
) -> None:
    for prompt, answer in answers:
        with torch.no_grad():
            logits = exact(torch.tensor([prompt + answer])).logits[0]
        # Each token is the best one after those before it: so the text is the greedy one.
        assert logits[len(prompt) - 1 : -1].argmax(-1).tolist() == answer


def test_what_is_written_alone_is_what_is_written_beside_others(
    backend: TorchBackend, answers: list[tuple[list[int], list[int]]]
) -> None:
    prompt, answer = answers[3]
    assert greedy(backend, prompt, NUM_NEW) == answer
    backend.kv_memory.free(0)


def test_along_llama_cpps_texts_both_say_nearly_the_same(
    backend: TorchBackend, starter: Path
) -> None:
    llama = LlamaBackend(EngineConfig(model_path=starter, context_tokens=2048, threads=1))
    try:
        divergences, num_sure = [], 0
        for prompt in PROMPTS:
            token_ids = backend.tokenizer.encode(prompt)
            expected = llama_greedy(llama, token_ids)
            found = logits_of(backend, token_ids, [])[len(token_ids) - len(expected) :]
            backend.kv_memory.free(0)
            divergences += divergence(expected, found).tolist()
            best = np.sort(expected, axis=1)
            is_sure = best[:, -1] - best[:, -2] >= SURE_MARGIN
            num_sure += int(is_sure.sum())
            assert (expected.argmax(1) == found.argmax(1))[is_sure].all()
        assert np.mean(divergences) <= MOST_MEAN_KL
        assert num_sure > len(divergences) // 2
    finally:
        llama.close()


def llama_greedy(llama: LlamaBackend, token_ids: list[int]) -> NDArray[np.float32]:
    """Goes on with the text for 32 tokens; the logits from its last token on."""
    rows = []
    part = LlamaPart(0, 0, list(token_ids), 1)
    for _ in range(NUM_NEW):
        assert llama.kv_memory.decode([part]) is None
        rows.append(llama.kv_memory.logits(1)[0].copy())
        token_ids.append(int(rows[-1].argmax()))
        part = LlamaPart(0, len(token_ids) - 1, token_ids[-1:], 1)
    llama.kv_memory.free(0)
    # What follows the last one was not asked for.
    token_ids.pop()
    return np.stack(rows)


def divergence(expected: NDArray[np.float32], found: NDArray[np.float32]) -> NDArray[np.float64]:
    """KL(expected || found) of each row, in nats."""
    first, second = (log_softmax(each.astype(np.float64)) for each in (expected, found))
    return (np.exp(first) * (first - second)).sum(axis=1)


def log_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    apart = logits - logits.max(axis=1, keepdims=True)
    return apart - np.log(np.exp(apart).sum(axis=1, keepdims=True))
