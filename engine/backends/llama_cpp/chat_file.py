"""Whether a model file is whole and one that can chat, told from its header alone."""

from pathlib import Path

from engine.backends.llama_cpp.gguf_file import REMEDY, check_file
from engine.backends.llama_cpp.gguf_header import (
    MAGIC,
    VERSIONS,
    GGUFHeader,
)
from engine.backends.llama_cpp.split_file import is_later_part, parts_of
from engine.backends.llama_cpp.whole_file import whole_header
from engine.errors import ModelDamaged, ModelNotFound, ModelUnsupported

MOST_CONTEXT_TOKENS = 2**31 - 1

# Files that belong to a chat model, and what they are.
_COMPANIONS = {
    "adapter": "a LoRA adapter, which changes a model and is none by itself",
    "mmproj": "a projector for pictures or sounds, which belongs to a model and is none by itself",
    "imatrix": "a table for making models smaller, and no model",
    "controlvector": "a control vector, which changes a model and is none by itself",
}
_COMPANION_ARCHITECTURES = {"clip": "mmproj", "controlvector": "controlvector"}
_NOT_WRITERS = frozenset(
    ("bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3")
    + ("modern-bert", "eurobert", "gemma-embedding", "llama-embed", "t5encoder", "wavtokenizer-dec")
)


def check_chat_file(path: Path) -> list[GGUFHeader]:
    """Raise the ModelError that says why this cannot be loaded as a model that chats; else give
    the headers of all its files."""
    if path.is_dir() and any(path.glob("*.safetensors")):
        raise ModelUnsupported(
            f"{path.name} is a model in safetensors files, which only the engine for NVIDIA cards"
            " ([cuda]) runs: choose a GGUF file of the same model."
        )
    _check_version(path)
    check_file(path)
    if is_later_part(path):
        raise ModelUnsupported(
            f"{path.name} is a later part of a model in {len(parts_of(path))} files: choose its"
            f" first part, {parts_of(path)[0].name}."
        )
    _check_parts(path)
    headers = [whole_header(part) for part in parts_of(path)]
    _check_kind(path, headers[0])
    if not any(header.tensors for header in headers):
        raise ModelUnsupported(
            f"{path.name} has a vocabulary and no weights in it: choose a model for text"
            " generation."
        )
    _check_context(path, headers[0])
    return headers


def _check_version(path: Path) -> None:
    try:
        # Of what is no file `check_file` says it; a pipe would be waited for.
        if not path.is_file():
            return
        with path.open("rb") as file:
            head = file.read(8)
    except OSError:
        # And it says why this is.
        return
    if head[:4] != MAGIC or len(head) < 8:
        return
    version = int.from_bytes(head[4:8], "little")
    if version in VERSIONS:
        return
    if version & 0xFFFF == 0:
        raise ModelUnsupported(
            f"{path.name} was made for processors of the other byte order: bring the usual,"
            " little-endian file of this model."
        )
    if version < min(VERSIONS):
        raise ModelUnsupported(
            f"{path.name} is a GGUF file of version {version}, which is too old: bring a newer file"
            " of this model."
        )
    raise ModelUnsupported(
        f"{path.name} is a GGUF file of version {version}, and this app reads up to version"
        f" {max(VERSIONS)}: update the app, or choose another model file."
    )


def _check_parts(path: Path) -> None:
    parts = parts_of(path)
    missing = [part.name for part in parts if not part.is_file()]
    if missing and path.is_file():
        others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ModelNotFound(
            f"{path.name} is the first of {len(parts)} files, and {missing[0]}{others} is missing"
            " beside it: bring all parts into one folder."
        )


def _check_kind(path: Path, header: GGUFHeader) -> None:
    architecture = header.architecture
    kind = _COMPANION_ARCHITECTURES.get(architecture) or header.text("general.type")
    if kind in _COMPANIONS:
        raise ModelUnsupported(
            f"{path.name} is {_COMPANIONS[kind]}: choose a model for text generation."
        )
    attends_both_ways = header.values.get(f"{architecture}.attention.causal") is False
    if architecture in _NOT_WRITERS or attends_both_ways:
        raise ModelUnsupported(
            f"{path.name} is a model for finding texts ({architecture}) and cannot write: choose a"
            " model for text generation."
        )


def _check_context(path: Path, header: GGUFHeader) -> None:
    """llama.cpp counts positions in whole numbers of four bytes with a sign."""
    told = header.values.get(f"{header.architecture}.context_length")
    # Where it is missing llama.cpp says so itself, if that kind of model needs it.
    if told is None or (isinstance(told, int) and 0 < told <= MOST_CONTEXT_TOKENS):
        return
    raise ModelDamaged(
        f"{path.name} is damaged (it says that its context holds {told} tokens, and 1 to"
        f" {MOST_CONTEXT_TOKENS:,} are possible): {REMEDY}"
    )


def num_file_bytes(path: Path) -> int:
    """Of all its parts that are there."""
    return sum(part.stat().st_size for part in parts_of(path) if part.is_file())
