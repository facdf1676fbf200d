"""Open a GGUF file for the torch engine: llama.cpp reads its vocabulary, and we the rest."""

from functools import partial
from pathlib import Path

from torch import Tensor

from engine.backends.base import ModelInfo
from engine.backends.llama_cpp.chat_file import check_chat_file
from engine.backends.llama_cpp.model import SAMPLING_KEYS
from engine.backends.llama_cpp.split_file import model_name
from engine.backends.llama_cpp.vocabulary_file import read_vocabulary
from engine.backends.llama_cpp.weights import Weights
from engine.backends.torch.architecture import Architecture
from engine.backends.torch.architectures.catalog import find_gguf
from engine.backends.torch.decoder_config import DecoderConfig
from engine.backends.torch.decoder_loader import DecoderLoader
from engine.backends.torch.gguf_facts import gguf_facts
from engine.backends.torch.gguf_weights import GGUFWeights
from engine.backends.torch.opened_model import OpenedModel, Progress
from engine.backends.torch.placement import Placement

_EMBEDDING = "token_embd.weight"


def open_gguf(path: Path) -> OpenedModel:
    """Raises the ModelError that says why it cannot be used."""
    headers = check_chat_file(path)
    header = headers[0]
    name = model_name(path)
    if name.startswith("sha256-"):
        # As Ollama names its files, by their sums.
        name = header.text("general.name") or name
    architecture = find_gguf(header.architecture, name)
    source = GGUFWeights(path, headers)
    found = read_vocabulary(path)

    def read(tensor: str) -> Tensor | None:
        weight = source.read(tensor) if tensor in source.names else None
        assert weight is None or isinstance(weight, Tensor), "rope factors are not packed"
        return weight

    num_words = source.num_rows.get(_EMBEDDING, found.vocabulary.num_tokens)
    facts = gguf_facts(header, name, num_words, read)
    config = architecture.configure(facts)
    sampling = {key: header.values.get(f"general.sampling.{key}") for key in SAMPLING_KEYS}
    return OpenedModel(
        info=ModelInfo(
            name=name,
            architecture=header.architecture,
            num_parameters=source.num_parameters,
            quantization=Weights(tuple(t for each in headers for t in each.tensors)).main_type,
            trained_context=facts.trained_context,
            num_bytes=source.num_bytes,
            kv_bytes_per_token=0,
            chat_template=found.chat_template,
            bos_text=found.vocabulary.bos_text,
            eos_text=found.vocabulary.eos_text,
            sampling={key: str(value) for key, value in sampling.items() if value is not None},
        ),
        config=config,
        source=source,
        tokenizer=found.vocabulary,
        has_head_norms="query_norm" in architecture.gguf_parts,
        loader=partial(_loader, source, config, architecture, name),
    )


def _loader(
    source: GGUFWeights,
    config: DecoderConfig,
    architecture: Architecture,
    name: str,
    placement: Placement,
    progress: Progress,
) -> DecoderLoader:
    return DecoderLoader.for_gguf(source, config, placement, architecture, name, progress)
