"""Make a model file smaller: the same weights, each in fewer bits. llama.cpp does it.

The new file takes its name when it is complete and can be opened; before that there is none. A
file that has got the name meanwhile keeps it.
"""

import ctypes
import os
import re
import shutil
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from engine.backends.llama_cpp.chat_file import check_chat_file
from engine.backends.llama_cpp.file_types import (
    FILE_TYPES,
    Quantized,
    is_quantized,
    size_as,
)
from engine.backends.llama_cpp.library import bindings, heard_log
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.own_part import give_name, name_taken, own_part, sweep_parts
from engine.backends.llama_cpp.weights import Weights, read_weights
from engine.errors import ModelError, UsageError

_PROGRESS = re.compile(r"\[\s*(\d+)/\s*(\d+)\]")

Progress = Callable[[int, int], None]
"""Is told how many tensors are done, of how many. In whatever thread it is."""


def quantize(
    source: Path,
    target: Path,
    type_name: str,
    *,
    num_threads: int,
    allow_again: bool = False,
    progress: Progress = lambda done, total: None,
) -> Quantized:
    """Write `source` as `target` with weights of that type. Blocks for seconds to many minutes.

    `allow_again`: also where it is quantised already, which loses more than doing so with the
    original. Raises UsageError or ModelError, and then there is no new file.
    """
    weights = _check(source, target, type_name, allow_again)
    sweep_parts(target)
    part = own_part(target)
    params = bindings.llama_model_quantize_default_params()
    params.nthread = num_threads
    params.ftype = FILE_TYPES[type_name][0]
    params.allow_requantize = True
    said: deque[str] = deque(maxlen=8)

    def hear(line: str) -> None:
        found = _PROGRESS.match(line)
        if found:
            progress(int(found[1]), int(found[2]))
        elif line.strip():
            said.append(line.strip())

    try:
        with heard_log(hear):
            code = bindings.llama_model_quantize(
                os.fsencode(source), os.fsencode(part), ctypes.byref(params)
            )
        if code != 0:
            # What cannot be opened cannot be made any other type either.
            LlamaModel(source, facts_only=True).close()
            reason = next((line for line in reversed(said) if "fail" in line), f"code {code}")
            raise ModelError(
                f"{source.name} could not be made {type_name} ({reason}): choose another type, or"
                " make room on the disk."
            )
        _check_opens(part, source)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        give_name(part, target)
    except BaseException:
        discard(target)
        raise
    size = target.stat().st_size
    num_numbers = sum(each.num_numbers for each in weights.tensors)
    return Quantized(
        bytes_before=source.stat().st_size,
        bytes_after=size,
        bits_per_weight=8 * size / max(1, num_numbers),
    )


def discard(target: Path) -> None:
    """Remove what this process has written of a file that did not become one."""
    with suppress(OSError):
        own_part(target).unlink()


def _check_opens(part: Path, source: Path) -> None:
    """What cannot be opened again is not worth its name."""
    try:
        LlamaModel(part, facts_only=True).close()
    except ModelError:
        # Where what it was made of cannot be opened either, that is what to say.
        LlamaModel(source, facts_only=True).close()
        raise


def _check(source: Path, target: Path, type_name: str, allow_again: bool) -> Weights:
    if type_name not in FILE_TYPES:
        raise UsageError(f"There is no type {type_name!r}; the types are {', '.join(FILE_TYPES)}.")
    check_chat_file(source)
    weights = read_weights(source)
    if is_quantized(weights) and not allow_again:
        raise UsageError(
            f"{source.name} is quantised already ({weights.main_type}), and doing it again loses"
            " more than doing it with the original: take the F16 file of this model, or give"
            " --again to do it all the same."
        )
    if target.exists():
        raise name_taken(target)
    if not target.parent.is_dir():
        raise UsageError(f"There is no folder {target.parent}: make it, or choose another place.")
    needed, free = size_as(weights, type_name), shutil.disk_usage(target.parent).free
    if needed > free:
        raise UsageError(
            f"This needs about {needed / 1e9:,.1f} GB and {free / 1e9:,.1f} GB are free where"
            f" {target} would lie: make room, or choose another place."
        )
    return weights
