"""The multimodal part of a model (mmproj): a file beside it, found by its name."""

import re
from pathlib import Path

from engine.backends.llama_cpp.split_file import model_name

MARK = "mmproj"
# What makers call it when its folder says which model it belongs to.
GENERIC = ("", "model")
_QUANTIZATION = re.compile(
    r"(?<![a-z0-9])(?:ud-)?(?:[fb]f?(?:16|32)|i?q\d(?:_[a-z0-9]+)*|mxfp4)(?![a-z0-9])"
)
_NO_LETTER = re.compile(r"[^a-z0-9]+")


def is_mmproj(path: Path) -> bool:
    return MARK in path.name.lower() and path.suffix.lower() == ".gguf"


def own_mmproj(model: Path) -> Path:
    """Where we put the multimodal part of a model that we bring: one name for each model, as the
    makers' names come again and again."""
    return model.with_name(f"{MARK}-{model_name(model)}.gguf")


def mmproj_beside(model: Path) -> Path | None:
    """The multimodal part of a model file, if it lies beside it.

    The one with our name; else one that is called as the model is, its quantisation aside; else
    one without a name in a folder of this model alone.
    """
    if not model.name:
        # Choices that are for no model in particular.
        return None
    own = own_mmproj(model)
    if own.is_file():
        return own
    try:
        files = sorted(each for each in model.parent.glob("*.[gG][gG][uU][fF]") if each.is_file())
    except OSError:
        return None
    parts = [each for each in files if is_mmproj(each)]
    name = _base(model)
    for part in parts:
        if _base(part) == name:
            return part
    is_alone = all(_base(each) == name for each in files if not is_mmproj(each))
    unnamed = [part for part in parts if _base(part) in GENERIC]
    return unnamed[0] if unnamed and is_alone else None


def _base(path: Path) -> str:
    """The name without what differs between the files of one model."""
    name = model_name(path).lower().replace(MARK, "")
    return _NO_LETTER.sub("", _QUANTIZATION.sub("", name))
