"""A GGUF file that is all there: its header, or what is missing."""

from pathlib import Path

from engine.backends.llama_cpp.gguf_file import REMEDY, check_file
from engine.backends.llama_cpp.gguf_header import BrokenHeader, GGUFHeader, read_header
from engine.errors import ModelDamaged


def whole_header(path: Path) -> GGUFHeader:
    """Of a file that has all its tensors. Raises a ModelError."""
    check_file(path)
    try:
        header = read_header(path)
    except BrokenHeader as error:
        raise ModelDamaged(f"{path.name} is cut off or damaged ({error}): {REMEDY}") from error
    size = path.stat().st_size
    if size < header.needed_bytes:
        raise ModelDamaged(
            f"{path.name} is cut off or damaged at {size:,} bytes of {header.needed_bytes:,}:"
            f" {REMEDY}"
        )
    return header
