"""A file that only this user may read, replaced as a whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Put `text` there, in UTF-8. Raises OSError, and then the file is what it was before."""
    part = path.parent / f"{path.name}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        with open(os.open(part, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
