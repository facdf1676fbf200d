"""Open a folder of safetensors files for the torch engine."""

from functools import partial
from pathlib import Path

from engine.backends.base import ModelInfo
from engine.backends.torch.architecture import Architecture
from engine.backends.torch.architectures.catalog import find_class
from engine.backends.torch.decoder_config import DecoderConfig
from engine.backends.torch.decoder_loader import DecoderLoader
from engine.backends.torch.opened_model import OpenedModel, Progress
from engine.backends.torch.placement import Placement
from engine.backends.torch.pretrained import read_config, read_tokenizer
from engine.backends.torch.pretrained_tokenizer import PretrainedTokenizer, end_ids
from engine.backends.torch.safetensors_facts import safetensors_facts
from engine.backends.torch.safetensors_weights import SafetensorsWeights
from engine.errors import ModelUnsupported


def open_safetensors(folder: Path) -> OpenedModel:
    """Raises the ModelError that says why it cannot be used."""
    name = folder.name
    source = SafetensorsWeights(folder)
    found = read_config(folder)
    classes = getattr(found, "architectures", None) or [""]
    architecture = find_class(str(classes[0]), name)
    if getattr(found, "quantization_config", None) is not None:
        raise ModelUnsupported(
            f"{name} is quantised in a way that the torch engine does not run: bring the model in"
            " BF16, or a GGUF file of it."
        )
    facts = safetensors_facts(found, name)
    config = architecture.configure(facts)
    library = read_tokenizer(folder)
    tokenizer = PretrainedTokenizer(
        library, end_ids(folder, found, library), max_tokens=facts.num_words
    )
    template = getattr(library, "chat_template", None)
    return OpenedModel(
        info=ModelInfo(
            name=name,
            architecture=str(getattr(found, "model_type", "")),
            num_parameters=source.num_parameters,
            quantization=source.main_type,
            trained_context=facts.trained_context,
            num_bytes=source.num_bytes,
            kv_bytes_per_token=0,
            chat_template=template if isinstance(template, str) else None,
            bos_text=library.bos_token or "",
            eos_text=library.eos_token or "",
        ),
        config=config,
        source=source,
        tokenizer=tokenizer,
        has_head_norms="query_norm" in architecture.safetensors_parts,
        loader=partial(_loader, source, config, architecture, name),
    )


def _loader(
    source: SafetensorsWeights,
    config: DecoderConfig,
    architecture: Architecture,
    name: str,
    placement: Placement,
    progress: Progress,
) -> DecoderLoader:
    return DecoderLoader.for_safetensors(source, config, placement, architecture, name, progress)
