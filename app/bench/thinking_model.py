"""A copy of a model whose template strips the thinking, whatever the model itself can.

    magic version | counts | entries: ... tokenizer.chat_template ... | tensors | pad | weights

It puts a thought in front of every answer and leaves it out once the answer is history. So what
was said changes behind the last turn, as with models that think, and every answer is an answer.
"""

import mmap
import shutil
from pathlib import Path
from struct import error as OutOfBounds
from struct import pack, unpack_from

from app.amounts import bytes_in_words
from engine.errors import ModelDamaged, UsageError

TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{- '<|im_start|>assistant\\n<think>\\n"
    "It stands in the text, so one short sentence will do.\\n</think>\\n\\n' -}}"
    "{%- endif -%}"
)
KEY = b"tokenizer.chat_template"
ALIGNMENT = b"general.alignment"
DEFAULT_ALIGNMENT = 32
STRING, ARRAY = 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a value, by its kind."""


def write_thinking_model(model: Path, to: Path) -> Path:
    """The copy in the folder `to`, which needs room for all of the model."""
    needed, free = model.stat().st_size, shutil.disk_usage(to).free
    if needed > free:
        raise UsageError(
            f"A copy of the model needs {bytes_in_words(needed)} and {to} has"
            f" {bytes_in_words(free)} free: make room, or choose other workloads with --only."
        )
    copy = to / f"{model.stem}-thinking.gguf"
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            header, begin = header_with(data, TEMPLATE)
        except (OutOfBounds, KeyError) as error:
            raise ModelDamaged(f"{model.name} is no GGUF file that can be copied.") from error
        file.seek(begin)
        with copy.open("wb") as target:
            target.write(header)
            shutil.copyfileobj(file, target, 2**20)
    return copy


def header_with(data: mmap.mmap, template: str) -> tuple[bytes, int]:
    """All that stands before the weights, with another template, and where the weights begin."""
    (version,) = unpack_from("<I", data, 4)
    num_tensors, num_entries = unpack_from("<QQ", data, 8)
    kept: list[bytes] = []
    alignment = DEFAULT_ALIGNMENT
    position = 24
    for _ in range(num_entries):
        begin = position
        key, position = read_string(data, position)
        (kind,) = unpack_from("<I", data, position)
        position += 4
        if key == ALIGNMENT:
            (alignment,) = unpack_from("<I", data, position)
        position = end_of_value(data, position, kind)
        if key != KEY:
            kept.append(data[begin:position])
    tensors = position
    for _ in range(num_tensors):
        _, position = read_string(data, position)
        (num_dimensions,) = unpack_from("<I", data, position)
        position += 4 + 8 * num_dimensions + 4 + 8
    kept.append(text_of(KEY) + pack("<I", STRING) + text_of(template.encode()))
    head = pack("<4sIQQ", b"GGUF", version, num_tensors, len(kept))
    header = head + b"".join(kept) + data[tensors:position]
    return header + bytes(-len(header) % alignment), position + -position % alignment


def end_of_value(data: mmap.mmap, position: int, kind: int) -> int:
    if kind == STRING:
        return read_string(data, position)[1]
    if kind != ARRAY:
        return position + SIZES[kind]
    kind, count = unpack_from("<IQ", data, position)
    position += 12
    if kind in SIZES:
        return position + SIZES[kind] * int(count)
    for _ in range(count):
        position = end_of_value(data, position, kind)
    return position


def read_string(data: mmap.mmap, position: int) -> tuple[bytes, int]:
    (length,) = unpack_from("<Q", data, position)
    end = position + 8 + length
    if end > len(data):
        raise OutOfBounds
    return data[position + 8 : end], end


def text_of(value: bytes) -> bytes:
    return pack("<Q", len(value)) + value
