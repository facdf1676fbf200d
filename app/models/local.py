"""The model files on this machine: the starter, and what lies in the models folder."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.models.starter import starter_model
from app.paths import Paths
from app.settings import Settings
from engine.errors import ModelNotFound

# Weights and KV are not all: llama.cpp computes in buffers of its own.
COMPUTE_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A GGUF file that can be chosen. `name` is what a command takes."""

    name: str
    path: Path
    num_bytes: int
    is_starter: bool
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What `models info` tells. Sizes in bytes, context in tokens."""

    name: str
    path: str
    architecture: str
    parameters: int
    quantization: str
    context: int
    kv_bytes_per_token: int
    memory_bytes: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def list_models(paths: Paths, settings: Settings) -> list[LocalModel]:
    starter = starter_model()
    chosen = find_model(paths, settings, settings.model) if settings.model else starter
    files = [] if starter is None else [starter]
    files += sorted(paths.models.glob("*.gguf"))
    if chosen is not None and chosen not in files:
        files.append(chosen)
    return [
        LocalModel(
            "starter" if path == starter else path.stem,
            path,
            path.stat().st_size if path.exists() else 0,
            path == starter,
            path == chosen,
        )
        for path in files
    ]


def find_model(paths: Paths, settings: Settings, name: str) -> Path:
    """The file for a path, a name from `models list`, or nothing (the chosen one).

    A path is returned whether or not there is a file: opening it tells more.
    """
    wanted = name or settings.model
    if wanted in ("", "starter"):
        starter = starter_model()
        if starter is None:
            raise ModelNotFound(
                "The starter model is not installed: run `make install` again, or name a GGUF file"
                " with --model."
            )
        return starter
    for candidate in (paths.models / wanted, paths.models / f"{wanted}.gguf"):
        if candidate.is_file():
            return candidate
    return Path(os.path.expanduser(wanted)).absolute()


def model_facts(path: Path, context_tokens: int) -> ModelFacts:
    """Read the facts without loading the weights; `memory_bytes` is for `context_tokens`."""
    # Reading the vocabulary needs the library, which other commands should not wait for.
    from engine.backends.llama_cpp.model import LlamaModel

    model = LlamaModel(path, facts_only=True)
    try:
        info = model.info()
    finally:
        model.close()
    num_cells = min(info.trained_context, context_tokens)
    num_bytes = path.stat().st_size
    return ModelFacts(
        name=info.name,
        path=str(path),
        architecture=info.architecture,
        parameters=info.num_parameters,
        quantization=info.quantization,
        context=info.trained_context,
        kv_bytes_per_token=info.kv_bytes_per_token,
        memory_bytes=num_bytes + num_cells * info.kv_bytes_per_token + COMPUTE_BYTES,
    )
