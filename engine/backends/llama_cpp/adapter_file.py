"""Whether a LoRA file is whole and made for a model, told from the headers of both.

llama.cpp ends the process over some shapes that it has not compared, so they are compared here.
"""

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.backends.llama_cpp.gguf_header import BrokenHeader, GGUFHeader, read_header
from engine.errors import ModelDamaged, ModelError, ModelNotFound, ModelUnsupported

REMEDY: Final = "choose another adapter, or bring this one again."
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterFacts:
    """What its file says: the architecture of its model, that one's name (or empty), and the two
    parts of each change, by the name of the weights that are changed."""

    architecture: str
    base_model: str
    changes: Mapping[str, tuple[Shape, Shape]]


def is_adapter_file(path: Path) -> bool:
    """False for what cannot be read as well."""
    try:
        return path.is_file() and read_header(path).text("general.type") == "adapter"
    except (OSError, BrokenHeader):
        return False


def check_adapter_file(path: Path) -> AdapterFacts:
    """Raise the ModelError that says why this cannot be used as an adapter of any model."""
    header = _header(path)
    kind = header.text("adapter.type") or "unnamed"
    if header.text("general.type") != "adapter":
        what = f"a model ({header.architecture})" if header.architecture else "something else"
        raise ModelUnsupported(
            f"{path.name} is no LoRA adapter but {what}: choose a GGUF file that was made from a"
            " LoRA."
        )
    if kind != "lora":
        raise ModelUnsupported(
            f"{path.name} is an adapter of another kind ({kind}): choose a LoRA adapter."
        )
    if "adapter.alora.invocation_tokens" in header.lengths:
        raise ModelUnsupported(
            f"{path.name} is a LoRA that begins to act in the middle of a prompt (aLoRA), which is"
            " not supported: choose an ordinary LoRA adapter."
        )
    size = path.stat().st_size
    if size < header.needed_bytes:
        raise ModelDamaged(
            f"{path.name} is cut off or damaged at {size:,} bytes of {header.needed_bytes:,}:"
            f" {REMEDY}"
        )
    return AdapterFacts(
        architecture=header.architecture or "unnamed",
        base_model=header.text("general.base_model.0.name"),
        changes=_changes(path, header),
    )


def check_fits(
    path: Path, facts: AdapterFacts, model_name: str, headers: Sequence[GGUFHeader]
) -> None:
    """Raise ModelUnsupported for an adapter of another model than the one with these headers."""
    own = headers[0].architecture
    if facts.architecture != own:
        raise ModelUnsupported(
            f"{path.name} is an adapter for {facts.architecture} models, and {model_name} is of the"
            f" architecture {own}: {_remedy(facts)}"
        )
    weights = {each.name: each.shape for header in headers for each in header.tensors}
    for name, (first, second) in facts.changes.items():
        if name not in weights:
            raise ModelUnsupported(
                f"{path.name} was made for another model: it changes {name}, which {model_name}"
                f" does not have: {_remedy(facts)}"
            )
        changed = _changed(name, first, second)
        if changed is None:
            raise ModelDamaged(
                f"{path.name} is damaged (the two parts of {name} are {_in_words(first)} and"
                f" {_in_words(second)}): {REMEDY}"
            )
        if changed != _padded(weights[name]):
            raise ModelUnsupported(
                f"{path.name} was made for another model: it changes {name} of"
                f" {_in_words(changed)}, and that of {model_name} is"
                f" {_in_words(_padded(weights[name]))}: {_remedy(facts)}"
            )


def _header(path: Path) -> GGUFHeader:
    try:
        # A pipe would be waited for.
        if path.exists() and not path.is_file():
            raise ModelError(f"{path} is not a file: {REMEDY}")
        return read_header(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise ModelNotFound(
                f"There is no adapter at {path}: choose another one, or use the model without it."
            ) from error
        raise ModelError(
            f"The adapter {path} cannot be read ({error.strerror}): give your user the right to"
            " read it, or choose another one."
        ) from error
    except BrokenHeader as error:
        raise ModelDamaged(
            f"{path.name} cannot be used as an adapter ({error}): {REMEDY}"
        ) from error


def _changes(path: Path, header: GGUFHeader) -> dict[str, tuple[Shape, Shape]]:
    parts: dict[str, dict[str, Shape]] = {}
    for tensor in header.tensors:
        name, _, part = tensor.name.rpartition(".")
        if part in ("lora_a", "lora_b"):
            parts.setdefault(name, {})[part] = tensor.shape
        elif not tensor.name.endswith("_norm.weight"):
            # llama.cpp passes over norms, and refuses all else.
            raise ModelUnsupported(
                f"{path.name} also replaces {tensor.name}, and only the two parts of a LoRA can be"
                " used: choose an adapter that was trained without that."
            )
    for name, found in parts.items():
        if len(found) < 2 or not all(map(all, found.values())):
            raise ModelDamaged(f"{path.name} is damaged (half of {name} is missing): {REMEDY}")
    if not parts:
        raise ModelDamaged(f"{path.name} changes nothing: {REMEDY}")
    return {name: (found["lora_a"], found["lora_b"]) for name, found in parts.items()}


def _changed(name: str, first: Shape, second: Shape) -> Shape | None:
    """The sizes of what a pair changes; None where its parts do not belong together."""
    a, b = _padded(first), _padded(second)
    # The table of words is looked up instead of multiplied, so its first part lies the other way.
    is_table = name == "token_embd.weight"
    rank, size = (a[0], (b[1], a[1])) if is_table else (a[1], (a[0], b[1]))
    return (*size, *a[2:]) if rank == b[0] and a[2:] == b[2:] else None


def _padded(sizes: Shape) -> Shape:
    return sizes + (1,) * (4 - len(sizes))


def _in_words(sizes: Shape) -> str:
    kept = [size for at, size in enumerate(sizes) if at < 2 or size > 1]
    return " x ".join(f"{size:,}" for size in kept)


def _remedy(facts: AdapterFacts) -> str:
    its = f" ({facts.base_model})" if facts.base_model else ""
    return f"use it with its own model{its}, or choose an adapter of this one."
