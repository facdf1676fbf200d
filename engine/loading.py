"""From a configuration to a running engine."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread

from engine.async_engine import AsyncEngine
from engine.backends.base import Backend, MediaReader, ModelInfo
from engine.backends.choice import draft_bytes, is_safetensors, open_backend
from engine.backends.llama_cpp.split_file import parts_of
from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import EngineDead, HomeError
from engine.guided.compiler import GrammarCompiler
from engine.kv.disk_folder import DiskFolder
from engine.kv.namespace import compute_digest, known_digest, namespace_of
from engine.sampling.draft_model import DraftModel, check_vocabularies
from engine.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

MEMO_NAME = "models.json"
DRAFT_BATCH_TOKENS = 64


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that answers: the engine's thread runs until `close()`."""

    engine: AsyncEngine
    tokenizer: Tokenizer
    info: ModelInfo
    backend: str
    grammars: GrammarCompiler
    media: MediaReader | None = None
    """None: the model reads text alone."""
    is_closing: Event = field(default_factory=Event)

    def close(self) -> None:
        """Store what may outlive the process, end the engine and free the model. Blocks."""
        self.is_closing.set()
        self.grammars.close()
        self.engine.close()


def load(config: EngineConfig) -> LoadedModel:
    """Load the model and start its engine. Blocks for as long as the file takes.

    Raises the ModelError that says why the model cannot be used.
    """
    backend, draft_model = open_backends(config)
    namespace = backend.kv_memory.namespace
    steps = Engine(backend, config, draft_model=draft_model)
    steps.measure_steps()
    engine = AsyncEngine(steps, backend.max_request_tokens)
    grammars = GrammarCompiler(backend.tokenizer)
    loaded = LoadedModel(
        engine, backend.tokenizer, backend.info, backend.kind, grammars, backend.media
    )
    if config.kv_folder is not None:
        files = files_of(config.model_path)
        if backend.media is not None and config.mmproj_path is not None:
            # The KV of a picture is that of what looked at it.
            files = [*files, config.mmproj_path]
        _use_disk(loaded, files, config.kv_folder, namespace)
    return loaded


def open_backends(config: EngineConfig) -> tuple[Backend, DraftModel | None]:
    """The model, and the one that drafts for it, if there is to be one; both fit into memory.

    Raises the ModelError that says why one of them cannot be used.
    """
    if config.draft_model_path is None:
        return open_backend(config), None
    drafting = draft_config(config, config.draft_model_path)
    backend = open_backend(config, beside_bytes=draft_bytes(drafting))
    try:
        draft = open_backend(drafting)
    except BaseException:
        backend.close()
        raise
    try:
        check_vocabularies(backend, draft)
    except BaseException:
        draft.close()
        backend.close()
        raise
    return backend, DraftModel(draft)


def draft_config(config: EngineConfig, model: Path) -> EngineConfig:
    """How the draft model is held: it follows those who run, and reads in small pieces."""
    return replace(
        config,
        model_path=model,
        draft_model_path=None,
        mmproj_path=None,
        adapters=(),
        max_sequences=config.max_running,
        max_batch_tokens=max(DRAFT_BATCH_TOKENS, config.max_running),
        kv_folder=None,
    )


def files_of(model: Path) -> list[Path]:
    """All that its KV follows from: of a folder its weights and its configuration."""
    if not is_safetensors(model):
        return parts_of(model)
    return [*sorted(model.glob("*.safetensors")), model / "config.json"]


def digest_of_all(files: Sequence[Path], one: Callable[[Path], bytes | None]) -> bytes | None:
    """Of all files of a model together; None where that of one is not known."""
    digests = [one(file) for file in files]
    known = [digest for digest in digests if digest is not None]
    if len(known) < len(digests):
        return None
    return known[0] if len(known) == 1 else sha256(b"".join(known)).digest()


def _use_disk(
    loaded: LoadedModel, files: Sequence[Path], folder: Path, memory_namespace: bytes
) -> None:
    """At once when the model's content is known, so that the first prompt finds what is stored;
    else as soon as the file has been read, and nobody waits for that."""
    memo = folder / MEMO_NAME
    with suppress(OSError):
        # What stands in the way is said when the disk is opened.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def attach(digest: bytes) -> None:
        disk = DiskFolder(folder, namespace_of(digest, memory_namespace))
        try:
            stored = disk.open()
            try:
                loaded.engine.do(lambda engine: engine.attach_disk(disk, stored))
            except EngineDead:
                # Else its lock would keep the next model from the disk.
                disk.close(0.0)
                raise
        except HomeError as error:
            notice = str(error)
            logger.warning("%s", notice)
            loaded.engine.do(lambda engine: engine.note_disk(notice))

    def find_out() -> None:
        try:
            digest = digest_of_all(
                files, lambda file: compute_digest(file, memo, loaded.is_closing)
            )
            if digest is not None:
                attach(digest)
        except (OSError, EngineDead) as error:
            logger.warning("the disk is not used for KV: %s", error)

    digest = digest_of_all(files, lambda file: known_digest(file, memo))
    if digest is not None:
        attach(digest)
    else:
        Thread(target=find_out, name="model digest", daemon=True).start()
