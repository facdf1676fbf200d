"""A model in several files, named as llama.cpp's gguf-split names them."""

import re
from pathlib import Path

_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)


def parts_of(path: Path) -> list[Path]:
    """All files of the model, whether they are there or not; only `path` when it is not split."""
    found = _PART.fullmatch(path.name)
    if found is None:
        return [path]
    stem, count = found["stem"], int(found["count"])
    ending = path.suffix
    return [
        path.with_name(f"{stem}-{number:05}-of-{count:05}{ending}")
        for number in range(1, count + 1)
    ]


def is_later_part(path: Path) -> bool:
    """Whether another file comes before this one: the first stands for all."""
    found = _PART.fullmatch(path.name)
    return found is not None and int(found["number"]) > 1


def model_name(path: Path) -> str:
    """What people call the file: its name, without what says that it is a part."""
    found = _PART.fullmatch(path.name)
    return path.stem if found is None else found["stem"]
