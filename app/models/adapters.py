"""Adapters as they are given and kept: a file or a name with a scale, and as values of JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.adapter import Adapter
from engine.errors import UsageError


def divided(text: str) -> tuple[str, float]:
    """`FILE[:SCALE]`: the file or its name, and the scale. Raises UsageError.

    A file whose own name has such an end goes before.
    """
    file, colon, end = text.rpartition(":")
    scale = 1.0
    if colon and not Path(text).expanduser().exists():
        try:
            scale = float(end)
        except ValueError:
            # A drive of Windows, or a name with a colon.
            file = text
    else:
        file = text
    if not file:
        raise UsageError(
            "An adapter is a GGUF file or a name of `models list`, as FILE or FILE:0.8."
        )
    return file, Adapter(Path(file), scale).scale


def adapters_from_json(values: object) -> tuple[Adapter, ...]:
    """Raises ValueError for what is no list of files and scales, InvalidParams for a scale that is
    out of range."""
    if not isinstance(values, list | tuple):
        raise ValueError("adapters is of the wrong kind")
    return tuple(_from_json(each) for each in values)


def _from_json(value: object) -> Adapter:
    if (
        not isinstance(value, dict)
        or set(value) != {"file", "scale"}
        or not isinstance(value["file"], str)
        or type(value["scale"]) not in (int, float)
    ):
        raise ValueError("an adapter is no file with a scale")
    return Adapter(Path(value["file"]), float(value["scale"]))


def adapters_as_json(adapters: Sequence[Adapter]) -> list[dict[str, Any]]:
    return [{"file": str(each.path), "scale": each.scale} for each in adapters]
