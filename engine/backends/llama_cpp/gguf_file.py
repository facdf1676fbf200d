"""What must hold of a GGUF file before llama.cpp may see it.

llama.cpp refuses most damaged files and ends the process over some; those are found here.
"""

import errno
import mmap
import stat
from dataclasses import dataclass
from pathlib import Path
from struct import calcsize, unpack_from
from struct import error as OutOfBounds
from typing import Final

from engine.backends.llama_cpp.gguf_header import FORMATS, MAGIC, VERSIONS
from engine.errors import ModelDamaged, ModelError, ModelNotFound

REMEDY: Final = "choose another model file or bring it again."

_STRING, _ARRAY = 8, 9
_MAX_LAYERS = 512


@dataclass(slots=True)
class _Facts:
    """What llama.cpp takes for granted."""

    words: list[bytes] | None = None
    tokenizer: bytes | None = None
    num_layers: float | None = None

    @property
    def is_complete(self) -> bool:
        return None not in (self.words, self.tokenizer, self.num_layers)


def check_file(path: Path) -> None:
    """Raise for a file that is missing, unreadable, no GGUF, or known to end the process."""
    try:
        # A pipe would be waited for.
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            raise ModelError(f"{path} is not a file: {REMEDY}")
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
            if magic == MAGIC:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    fault = _fault(data)
                if fault is not None:
                    raise ModelDamaged(f"{path.name} is cut off or damaged ({fault}): {REMEDY}")
                return
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise ModelNotFound(f"There is no model file at {path}: {REMEDY}") from error
        raise ModelError(
            f"The model file {path} cannot be read ({error.strerror}): give your user the right to"
            " read it, or choose another one."
        ) from error
    raise ModelDamaged(f"{path} is not a GGUF model ({path.stat().st_size:,} bytes): {REMEDY}")


def _fault(data: mmap.mmap) -> str | None:
    """What llama.cpp would abort over, in a few words."""
    try:
        facts = _read_facts(data)
    except (OutOfBounds, KeyError):
        return f"it ends or breaks off within {len(data):,} bytes"
    if facts.num_layers is not None and not 0 < facts.num_layers <= _MAX_LAYERS:
        return f"{facts.num_layers:,.0f} layers"
    words = set(facts.words or ())
    if len(words) != len(facts.words or ()):
        return "a word twice in its vocabulary"
    # A sentencepiece vocabulary spells what it has no word for.
    if facts.tokenizer == b"llama" and any(
        b"<0x%02X>" % value not in words and bytes([value]) not in words for value in range(1, 256)
    ):
        return "not every byte in its vocabulary"
    return None


def _read_facts(data: mmap.mmap) -> _Facts:
    facts = _Facts()
    (version,) = unpack_from("<I", data, 4)
    if version not in VERSIONS:
        # Other lengths, or the other byte order: llama.cpp refuses those.
        return facts
    (num_entries,) = unpack_from("<Q", data, 16)
    position = 24
    for _ in range(num_entries):
        key, position = _read_string(data, position)
        (kind,) = unpack_from("<I", data, position)
        position += 4
        if kind == _ARRAY:
            kind, count = unpack_from("<IQ", data, position)
            position += 12
            if kind == _STRING:
                words, position = _read_words(data, position, count)
                if key == b"tokenizer.ggml.tokens":
                    facts.words = words
            else:
                position += calcsize(FORMATS[kind]) * count
        elif kind == _STRING:
            value, position = _read_string(data, position)
            if key == b"tokenizer.ggml.model":
                facts.tokenizer = value
        else:
            if key.endswith(b".block_count"):
                (facts.num_layers,) = unpack_from("<" + FORMATS[kind], data, position)
            position += calcsize(FORMATS[kind])
        if facts.is_complete:
            break
    return facts


def _read_words(data: mmap.mmap, position: int, count: int) -> tuple[list[bytes], int]:
    """As llama.cpp sees them: a word ends at a NUL, and an empty one gets a name."""
    words = []
    for index in range(count):
        word, position = _read_string(data, position)
        words.append(word.partition(b"\0")[0] or b"[EMPTY_%d]" % index)
    return words, position


def _read_string(data: mmap.mmap, position: int) -> tuple[bytes, int]:
    (length,) = unpack_from("<Q", data, position)
    start = position + 8
    end = start + length
    if end > len(data):
        raise OutOfBounds
    return data[start:end], end
