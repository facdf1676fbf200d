"""What KV depends on besides tokens: the model's content and how its backend lays KV out.

The content is known by its hash, which takes seconds for a large file, so it is taken once and
remembered by the file's identity. Until it is known there is no disk tier, and nothing waits.
"""

import hashlib
import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.kv.segment_file import NAMESPACE_BYTES

DIGEST_BYTES = 32
_READ_BYTES = 1 << 20


def namespace_of(model_digest: bytes, memory_namespace: bytes) -> bytes:
    """Both go in whole: the one as key, the other as text of the hash."""
    return hashlib.blake2b(memory_namespace, digest_size=NAMESPACE_BYTES, key=model_digest).digest()


def known_digest(model: Path, memo: Path) -> bytes | None:
    """The hash of a file that has not changed since it was taken. None: it must be computed."""
    try:
        entry = _entries(memo)[str(model.resolve())]
        if entry["identity"] != _identity(model.stat()):
            return None
        digest = bytes.fromhex(entry["sha256"])
    except (OSError, KeyError, TypeError, ValueError):
        return None
    return digest if len(digest) == DIGEST_BYTES else None


def compute_digest(model: Path, memo: Path, cancelled: threading.Event) -> bytes | None:
    """Read the file and remember its SHA-256. None: cancelled, or it changed meanwhile.

    Takes as long as the disk does, and ends within milliseconds of `cancelled`. Raises OSError
    when the model cannot be read; a memo that cannot be written is no fault.
    """
    sha256 = hashlib.sha256()
    buffer = memoryview(bytearray(_READ_BYTES))
    with open(model, "rb", buffering=0) as file:
        identity = _identity(os.fstat(file.fileno()))
        while count := file.readinto(buffer):
            if cancelled.is_set():
                return None
            sha256.update(buffer[:count])
    if _identity(model.stat()) != identity:
        return None
    entries = {path: entry for path, entry in _entries(memo).items() if Path(path).exists()}
    entries[str(model.resolve())] = {"identity": identity, "sha256": sha256.hexdigest()}
    with suppress(OSError):
        _write(memo, json.dumps(entries, indent=1))
    return sha256.digest()


def _identity(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def _entries(memo: Path) -> dict[str, Any]:
    """What is remembered; nothing when there is no memo or it is damaged."""
    try:
        entries = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _write(memo: Path, text: str) -> None:
    """Replaced as a whole; for this user only, since it names the user's files."""
    part = memo.with_name(f"{memo.name}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        with open(os.open(part, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        part.replace(memo)
    except OSError:
        part.unlink(missing_ok=True)
        raise
