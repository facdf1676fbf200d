"""The only door to transformers: the configuration and the tokenizer of a folder of safetensors.

It is imported when such a folder is opened, since that takes seconds.
"""

import os
from pathlib import Path
from typing import Any

from engine.errors import ModelDamaged, ModelUnsupported


def read_config(folder: Path) -> Any:
    """Its `config.json`, with what it leaves out. No code of the folder runs, and nothing is
    fetched. Raises a ModelError."""
    auto = _library()
    try:
        return auto.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelDamaged(
            f"The configuration of {folder.name} cannot be understood"
            f" ({_first_line(error)}): bring the folder of the model again."
        ) from error


def read_tokenizer(folder: Path) -> Any:
    """As `read_config`."""
    auto = _library()
    try:
        found = auto.AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_fast=True
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelDamaged(
            f"The tokenizer of {folder.name} cannot be read ({_first_line(error)}): bring the"
            " folder of the model again."
        ) from error
    if not found.is_fast:
        raise ModelUnsupported(
            f"{folder.name} has no tokenizer.json, which is needed: bring a GGUF file of it."
        )
    return found


def _library() -> Any:
    # It would speak of itself on standard error, and look for other libraries to import.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    try:
        import transformers
    except ImportError as error:
        raise ModelUnsupported(
            "A model in safetensors files needs transformers, which is not installed: install the"
            " extra [cuda], or bring a GGUF file of the model."
        ) from error
    return transformers


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
