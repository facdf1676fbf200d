"""What a model file is and why it cannot be used, if so: told from its header, and remembered.

Reading the words of a large vocabulary takes a fifth of a second, so what was seen is kept in the
cache until the file changes.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from app.models.quantizations import named, quantization_of
from app.private_file import write_private
from engine.backends.llama_cpp.adapter_file import check_adapter_file, is_adapter_file
from engine.backends.llama_cpp.architectures import is_known_architecture
from engine.backends.llama_cpp.chat_file import check_chat_file, num_file_bytes
from engine.backends.llama_cpp.gguf_shape import shape_of
from engine.backends.llama_cpp.kv_type import KVShape
from engine.backends.llama_cpp.model_shape import ContextShape, ModelShape
from engine.backends.llama_cpp.split_file import parts_of
from engine.errors import InglenookError, ModelUnsupported

FORM = 3
"""To be raised when something else is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """`problem` empty: it can be used, and `shape` is there if it is a model. Of an adapter the
    architecture is that of its model, and `base_model` what it was made for, or empty."""

    num_bytes: int
    is_adapter: bool = False
    architecture: str = ""
    base_model: str = ""
    quantization: str = ""
    shape: ModelShape | None = None
    problem: str = ""


class Looks:
    """What was seen of each file. Owned by the event loop; `at` blocks, for a new file."""

    def __init__(self, memo: Path) -> None:
        self._memo = memo
        self._known: dict[str, Any] | None = None

    def at(self, path: Path) -> Look:
        key, identity = str(path), _identity(path)
        known = self._entries().get(key)
        if known is not None and identity is not None and known.get("identity") == identity:
            with suppress(KeyError, TypeError, ValueError):
                return _look_from(known["look"])
        look = look_at(path)
        # A file that is missing or unreadable may be back at the next look.
        if identity is not None:
            self._entries()[key] = {"identity": identity, "look": _as_json(look)}
            self._keep()
        return look

    def _entries(self) -> dict[str, Any]:
        if self._known is None:
            self._known = {}
            with suppress(OSError, ValueError, RecursionError):
                found = json.loads(self._memo.read_text(encoding="utf-8"))
                if isinstance(found, dict) and found.get("made_by") == _made_by():
                    self._known = {k: v for k, v in found["files"].items() if isinstance(v, dict)}
        return self._known

    def _keep(self) -> None:
        files = {path: entry for path, entry in self._entries().items() if Path(path).exists()}
        with suppress(OSError):
            write_private(self._memo, json.dumps({"made_by": _made_by(), "files": files}))


def look_at(path: Path) -> Look:
    """Read the header, whatever it may be."""
    num_bytes = num_file_bytes(path)
    if is_adapter_file(path):
        return _look_at_adapter(path, num_bytes)
    try:
        headers = check_chat_file(path)
        architecture = headers[0].architecture
        if not is_known_architecture(architecture):
            raise ModelUnsupported(
                f"{path.name} is of a kind ({architecture or 'unnamed'}) that this build of"
                " llama.cpp does not know: choose a model of another kind, or update the app."
            )
        shape = shape_of(headers)
    except InglenookError as error:
        return Look(num_bytes=num_bytes, problem=str(error))
    except OSError as error:
        problem = f"{path} cannot be read ({error.strerror}): choose another file."
        return Look(num_bytes=num_bytes, problem=problem)
    file_type = headers[0].number("general.file_type", -1)
    return Look(
        num_bytes=num_bytes,
        architecture=architecture,
        quantization=quantization_of(path.name) or named(file_type),
        shape=shape,
    )


def _look_at_adapter(path: Path, num_bytes: int) -> Look:
    try:
        facts = check_adapter_file(path)
    except InglenookError as error:
        return Look(num_bytes=num_bytes, is_adapter=True, problem=str(error))
    return Look(
        num_bytes=num_bytes,
        is_adapter=True,
        architecture=facts.architecture,
        base_model=facts.base_model,
    )


def _identity(path: Path) -> list[list[int]] | None:
    try:
        stats = [part.stat() for part in parts_of(path)]
    except OSError:
        return None
    return [[stat.st_size, stat.st_mtime_ns, stat.st_ino] for stat in stats]


def _made_by() -> list[Any]:
    """What the looks depend on besides the files."""
    return [FORM, version("llama-cpp-python")]


def _as_json(look: Look) -> dict[str, Any]:
    values: dict[str, Any] = {
        each.name: getattr(look, each.name) for each in fields(Look) if each.name != "shape"
    }
    if look.shape is not None:
        shape, context = look.shape, look.shape.context
        values["shape"] = {
            "num_bytes": shape.num_bytes,
            "num_parameters": shape.num_parameters,
            "multiplied": dict(shape.multiplied),
            "read_bytes": shape.read_bytes,
            "num_layers": shape.num_layers,
            "trained_context": shape.trained_context,
        }
        values["context"] = {
            "width": context.width,
            "widest_layer": context.widest_layer,
            "num_words": context.num_words,
            "window_tokens": context.window_tokens,
        }
        kv = context.kv
        values["kv"] = [kv.num_numbers, sorted(kv.head_sizes), kv.is_exact]
    return values


def _look_from(values: Mapping[str, Any]) -> Look:
    """Raises KeyError, TypeError or ValueError."""
    shape = None
    if "shape" in values:
        num_numbers, head_sizes, is_exact = values["kv"]
        kv = KVShape(num_numbers, frozenset(head_sizes), is_exact)
        shape = ModelShape(**values["shape"], context=ContextShape(**values["context"], kv=kv))
    return Look(
        num_bytes=values["num_bytes"],
        is_adapter=values["is_adapter"],
        base_model=values["base_model"],
        architecture=values["architecture"],
        quantization=values["quantization"],
        shape=shape,
        problem=values["problem"],
    )
