"""The model files on this machine: the starter, ours, those added, and other programs'."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.models.adapters import adapters_as_json
from app.models.elsewhere import find_elsewhere
from app.models.mmproj import is_mmproj, mmproj_beside
from app.models.shelf import Shelf
from app.models.starter import starter_model
from app.paths import Paths
from app.settings import Settings
from engine.adapter import Adapter
from engine.backends.llama_cpp.split_file import is_later_part, model_name, parts_of
from engine.config import EngineConfig
from engine.errors import ModelError, ModelNotFound

STARTER = "starter"
BROUGHT, COPIED, FOLDER, ADDED = "downloaded", "copied", "models folder", "added"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model that can be chosen. `name` is what a command takes, `source` where it is from: one of
    the words above, or the program that has it."""

    name: str
    path: Path
    num_bytes: int
    is_starter: bool
    is_chosen: bool
    source: str
    mmproj: Path | None = None
    """The multimodal part beside it."""

    @property
    def is_ours(self) -> bool:
        """Whether we brought the file, and so may delete it."""
        return self.source in (BROUGHT, COPIED)

    @property
    def can_be_removed(self) -> bool:
        return self.is_ours or self.source == ADDED


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
    adapters: tuple[Adapter, ...] = ()
    mmproj: str = ""
    reads: tuple[str, ...] = ()
    """What else than text: "images", "audio"."""
    media_refusal: str = ""
    """Why the multimodal part that is there cannot be used, as far as its header tells."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"adapters": adapters_as_json(self.adapters)}


def known_models(paths: Paths) -> list[tuple[str, Path, str]]:
    """Name, first file and source of each; no name and no file comes twice. Raises HomeError."""
    shelf = Shelf(paths.shelf)
    brought = {each.file: BROUGHT if each.repo else COPIED for each in shelf.brought()}
    starter = starter_model()
    found = [] if starter is None else [(STARTER, starter, STARTER)]
    for path in sorted(paths.models.glob("*.gguf")):
        # A pipe would be waited for; of a link to nowhere it is said what is wrong.
        is_other = path.exists() and not path.is_file()
        # A multimodal part is told of with its model.
        if not (is_other or is_later_part(path) or is_mmproj(path)):
            found.append((model_name(path), path, brought.get(path.name, FOLDER)))
    found += [(model_name(path), path, ADDED) for path in shelf.added()]
    found += [(each.name, each.path, each.program) for each in find_elsewhere()]
    known: list[tuple[str, Path, str]] = []
    names: set[str] = set()
    files: set[Path] = set()
    for name, path, source in found:
        file = _resolved(path)
        if file in files:
            continue
        files.add(file)
        unique, number = name, 2
        while unique in names:
            unique, number = f"{name} ({number})", number + 1
        names.add(unique)
        known.append((unique, path, source))
    return known


def list_models(paths: Paths, settings: Settings) -> list[LocalModel]:
    known = known_models(paths)
    starter = starter_model()
    chosen = find_model(paths, settings, settings.model) if settings.model else starter
    if chosen is not None and chosen not in [path for _, path, _ in known]:
        known.append((model_name(chosen), chosen, ADDED))
    return [
        LocalModel(
            name,
            path,
            num_bytes_of(path),
            path == starter,
            path == chosen,
            source,
            mmproj_beside(path),
        )
        for name, path, source in known
    ]


def find_model(paths: Paths, settings: Settings, name: str) -> Path:
    """The file for a path, a name from `models list`, or nothing (the chosen one).

    A path is returned whether or not there is a file: opening it tells more.
    """
    wanted = name or settings.model
    if wanted in ("", STARTER):
        starter = starter_model()
        if starter is None:
            raise ModelNotFound(
                "The starter model is not installed: run `make install` again, or name a GGUF file"
                " with --model."
            )
        return starter
    path = Path(os.path.expanduser(wanted))
    if path.is_absolute() and path.exists():
        return path
    for candidate in (paths.models / wanted, paths.models / f"{wanted}.gguf"):
        # A file that is still on its way has another ending.
        if candidate.suffix.lower() == ".gguf" and candidate.is_file():
            return candidate
    for known, file, _ in known_models(paths):
        if wanted in (known, file.name):
            return file
    return path.absolute()


def num_bytes_of(path: Path) -> int:
    """All its parts together; 0 where there is no file."""
    return sum(part.stat().st_size for part in parts_of(path) if part.is_file())


def model_facts(config: EngineConfig) -> ModelFacts:
    """Read the facts without loading the weights; `memory_bytes` is what it takes loaded so."""
    # Reading the vocabulary needs the library, which other commands should not wait for.
    from engine.backends.llama_cpp.model import LlamaModel

    model = LlamaModel(config.model_path, facts_only=True)
    try:
        info = model.info(model.kv_shape.choose(config.kv_type))
        needed = model.shape.memory_bytes(config)
    finally:
        model.close()
    reads, refusal = _reads(config.mmproj_path)
    return ModelFacts(
        name=info.name,
        path=str(config.model_path),
        architecture=info.architecture,
        parameters=info.num_parameters,
        quantization=info.quantization,
        context=info.trained_context,
        kv_bytes_per_token=info.kv_bytes_per_token,
        memory_bytes=needed,
        adapters=config.adapters,
        mmproj="" if config.mmproj_path is None else str(config.mmproj_path),
        reads=reads,
        media_refusal=refusal,
    )


def _reads(mmproj: Path | None) -> tuple[tuple[str, ...], str]:
    """What a multimodal part makes readable, or why it does not."""
    if mmproj is None:
        return (), ""
    from engine.backends.llama_cpp.mmproj_file import read_mmproj

    try:
        shape = read_mmproj(mmproj)
    except ModelError as error:
        return (), str(error)
    kinds = {"images": shape.has_vision, "audio": shape.has_audio}
    return tuple(kind for kind, has in kinds.items() if has), ""


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path
