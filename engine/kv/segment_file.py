"""One segment as a file: a header that says all about it, and the KV that a backend gave.

    0    magic, version, length of the header, and the figures of `_FIXED`
    116  owners (JSON in UTF-8), token ids (int32, little endian), zeros, XXH3-64 of all before it
    64*n the payload, to the end of the file

Both checksums guard against damage. A file says whose it is in every respect, so an index that
was lost is made anew from headers alone, and a file in the place of another one is not taken.
"""

import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xxhash import xxh3_64_digest, xxh3_64_intdigest

from engine.kv.disk import StoredSegment
from engine.kv.segment import KEY_BYTES, Blob

MAGIC = b"InglenKV"
VERSION = 1
ALIGNMENT = 64
NAMESPACE_BYTES = 32
CHECKSUM_BYTES = 8
SUFFIX = ".kv"
PART_SUFFIX = ".part"
"""What a write that was interrupted leaves; never read."""

# magic, version, header bytes, namespace, key, parent key, flags, tokens, bytes of the owners,
# start, payload bytes, payload checksum
_FIXED = struct.Struct("<8sII32s16s16sIIIqQQ")
_HAS_PARENT = 1
_IS_CANONICAL = 2

# Holds the header of a usual segment, so most are read in one piece.
_FIRST_READ_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Header:
    """Of a sound header: `segment.last_used` is 0, and the payload begins at `num_bytes`."""

    namespace: bytes
    segment: StoredSegment
    num_bytes: int

    @property
    def num_file_bytes(self) -> int:
        return self.num_bytes + self.segment.num_bytes


def namespace_folder(folder: Path, namespace: bytes) -> Path:
    return folder / namespace.hex()[:16]


def segment_name(namespace: bytes, key: bytes) -> str:
    """The place of its file under the folder of the disk tier, with slashes on every system."""
    name = key.hex()
    return f"{namespace.hex()[:16]}/{name[:2]}/{name}{SUFFIX}"


def segment_path(folder: Path, namespace: bytes, key: bytes) -> Path:
    return folder / segment_name(namespace, key)


def encode_header(namespace: bytes, segment: StoredSegment) -> bytes:
    """All that stands before the payload of `segment.num_bytes` bytes."""
    assert len(segment.key) == KEY_BYTES and len(namespace) == NAMESPACE_BYTES
    owners = json.dumps(dict(segment.num_used), ensure_ascii=False).encode()
    num_bytes = _num_header_bytes(len(owners), len(segment.token_ids))
    flags = _HAS_PARENT * bool(segment.parent_key) + _IS_CANONICAL * segment.is_canonical
    fixed = _FIXED.pack(
        MAGIC,
        VERSION,
        num_bytes,
        namespace,
        segment.key,
        segment.parent_key,
        flags,
        len(segment.token_ids),
        len(owners),
        segment.start,
        segment.num_bytes,
        segment.checksum,
    )
    told = fixed + owners + np.array(segment.token_ids, "<i4").tobytes()
    told = told.ljust(num_bytes - CHECKSUM_BYTES, b"\0")
    return told + xxh3_64_digest(told)


def decode_header(data: bytes | memoryview) -> Header | None:
    """What a file says that begins with `data`. None: too short, damaged, or not ours."""
    view = memoryview(data)
    if len(view) < _FIXED.size:
        return None
    (
        magic,
        version,
        num_bytes,
        namespace,
        key,
        parent_key,
        flags,
        num_tokens,
        num_owner_bytes,
        start,
        num_payload_bytes,
        checksum,
    ) = _FIXED.unpack_from(view)
    if magic != MAGIC or version != VERSION or num_bytes > len(view):
        return None
    if num_bytes != _num_header_bytes(num_owner_bytes, num_tokens):
        return None
    told = view[: num_bytes - CHECKSUM_BYTES]
    if xxh3_64_digest(told) != view[num_bytes - CHECKSUM_BYTES : num_bytes]:
        return None
    tokens_at = _FIXED.size + num_owner_bytes
    return Header(
        namespace,
        StoredSegment(
            key=key,
            parent_key=parent_key if flags & _HAS_PARENT else b"",
            start=start,
            token_ids=tuple(np.frombuffer(told, "<i4", num_tokens, tokens_at).tolist()),
            is_canonical=bool(flags & _IS_CANONICAL),
            num_used=json.loads(bytes(told[_FIXED.size : tokens_at])),
            last_used=0.0,
            num_bytes=num_payload_bytes,
            checksum=checksum,
        ),
        num_bytes,
    )


def read_header(path: Path) -> Header | None:
    """The header of a file that is as long as it should be. None: it is damaged. Raises OSError."""
    with open(path, "rb", buffering=0) as file:
        data = file.read(_FIRST_READ_BYTES)
        if len(data) >= _FIXED.size:
            num_bytes = _FIXED.unpack_from(data)[2]
            # A damaged figure may ask for anything; no file is asked for more than it has.
            num_file_bytes = os.fstat(file.fileno()).st_size
            while len(data) < min(num_bytes, num_file_bytes):
                data += file.read(num_bytes - len(data))
        header = decode_header(data)
        if header is None or os.fstat(file.fileno()).st_size != header.num_file_bytes:
            return None
    return header


def decode_file(data: Blob, namespace: bytes, key: bytes) -> Blob | None:
    """The payload of a whole file, a view. None: it is damaged or that of another segment."""
    header = decode_header(data.data)
    if header is None or header.namespace != namespace or header.segment.key != key:
        return None
    # The checksum also covers the length.
    payload = data[header.num_bytes :]
    return payload if xxh3_64_intdigest(payload.data) == header.segment.checksum else None


def write_file(path: Path, header: bytes, blob: Blob) -> int:
    """Put a whole file there or nothing; gives its length. Raises OSError.

    Not flushed to the platter: KV can always be computed again, and a file that a power failure
    tore is found by its checksums.
    """
    part = path.with_suffix(PART_SUFFIX)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(part, flags, 0o600), "wb") as file:
            file.write(header)
            file.write(blob.data)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
    return len(header) + blob.nbytes


def _num_header_bytes(num_owner_bytes: int, num_tokens: int) -> int:
    told = _FIXED.size + num_owner_bytes + 4 * num_tokens + CHECKSUM_BYTES
    return -(-told // ALIGNMENT) * ALIGNMENT


assert KEY_BYTES == 16 and NAMESPACE_BYTES == 32, "the sizes in _FIXED"
