"""The adapters in words, for the sheet of the models: those that are here, and those in use."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.amounts import bytes_in_words
from app.models.library import Listed
from engine.adapter import LEAST_SCALE, MOST_SCALE, Adapter
from engine.errors import UsageError


def adapter_row(listed: Listed) -> dict[str, Any]:
    """One adapter that is here. `problem` says why it cannot be used, or is empty."""
    model, look = listed.model, listed.look
    facts = [bytes_in_words(model.num_bytes), look.architecture, model.source]
    made_for = f" It was made for {look.base_model}." if look.base_model else ""
    return {
        "name": model.name,
        "is_adapter": True,
        "facts": [each for each in facts if each],
        "path": str(model.path),
        "is_chosen": False,
        "can_be_removed": model.can_be_removed,
        "problem": look.problem,
        "note": f"An adapter (LoRA), which changes a model.{made_for} It is chosen in the details"
        " of the model in use.",
        "details": [],
    }


def choices(
    used: Sequence[Adapter], listed: Sequence[Listed], architecture: str
) -> list[dict[str, Any]]:
    """What the model in use may be loaded with: what it is loaded with, in its order, and the
    adapters here for models of its architecture."""
    known = {each.model.path: each for each in listed if each.look.is_adapter}
    rows = [_choice(known.get(each.path), each, is_used=True) for each in used]
    for path, each in known.items():
        is_fitting = not each.look.problem and each.look.architecture == architecture
        if is_fitting and path not in [adapter.path for adapter in used]:
            rows.append(_choice(each, Adapter(path), is_used=False))
    return rows


def _choice(listed: Listed | None, adapter: Adapter, *, is_used: bool) -> dict[str, Any]:
    return {
        "name": listed.model.name if listed is not None else adapter.path.stem,
        "path": str(adapter.path),
        "scale": adapter.scale,
        "least": LEAST_SCALE,
        "most": MOST_SCALE,
        "is_used": is_used,
        "size": bytes_in_words(adapter.num_bytes),
    }


def chosen(given: object) -> list[Adapter]:
    """What the sheet sends: paths and scales. Raises UsageError."""
    if not isinstance(given, list):
        raise UsageError("There are no adapters to choose from: open the sheet anew.")
    return [_adapter(each) for each in given]


def _adapter(given: object) -> Adapter:
    path = given.get("path") if isinstance(given, dict) else None
    scale = given.get("scale") if isinstance(given, dict) else None
    if not isinstance(path, str) or not path:
        raise UsageError("This is no adapter: open the sheet anew.")
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise UsageError(f"Give a scale between {LEAST_SCALE:g} and {MOST_SCALE:g}.")
    return Adapter(Path(path), float(scale))
