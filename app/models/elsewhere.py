"""Models that other programs on this machine have: found where those keep them, and not copied.

LM Studio   ~/.lmstudio/models, ~/.cache/lm-studio/models          OWNER/NAME/FILE.gguf
Ollama      ~/.ollama/models, or OLLAMA_MODELS                     a manifest names a blob
Hugging Face  ~/.cache/huggingface/hub, or HF_HUB_CACHE            models--OWNER--NAME/snapshots
Jan         its data folder, llamacpp/models; ~/jan/models         NAME/model.gguf
GPT4All     its data folder                                        FILE.gguf
llama.cpp   ~/.cache/llama.cpp, or LLAMA_CACHE                     FILE.gguf
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from engine.backends.llama_cpp.split_file import is_later_part, model_name

MOST_FILES = 300
_DEEPEST = 5
_MODEL_LAYER = "application/vnd.ollama.image.model"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """`program` is whose it is."""

    name: str
    path: Path
    program: str


def find_elsewhere(
    home: Path | None = None, environment: Mapping[str, str] = os.environ
) -> list[Elsewhere]:
    """In the order above; a folder that cannot be read is left out."""
    home = Path.home() if home is None else home
    found: list[Elsewhere] = []
    for program, folder in _folders(home, environment):
        if program == "Ollama":
            found += islice(_of_ollama(folder), MOST_FILES)
            continue
        for file in islice(_gguf_files(folder), MOST_FILES):
            # Jan calls every file so, and its folder says which one it is.
            name = file.parent.name if file.name == "model.gguf" else model_name(file)
            found.append(Elsewhere(name, file, program))
    return found


def _folders(home: Path, environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    def chosen(name: str, *usual: Path) -> list[Path]:
        value = environment.get(name)
        return [Path(value).expanduser()] if value else list(usual)

    support = home / "Library" / "Application Support"
    roaming, local = home / "AppData" / "Roaming", home / "AppData" / "Local"
    share, cache = home / ".local" / "share", home / ".cache"
    jan = [root / "Jan" / "data" for root in (share, support, roaming)]
    places = {
        "LM Studio": [home / ".lmstudio" / "models", cache / "lm-studio" / "models"],
        "Ollama": chosen("OLLAMA_MODELS", home / ".ollama" / "models"),
        "Hugging Face": chosen("HF_HUB_CACHE", cache / "huggingface" / "hub"),
        "Jan": [*(root / "llamacpp" / "models" for root in jan), home / "jan" / "models"],
        "GPT4All": [root / "nomic.ai" / "GPT4All" for root in (share, support, local)],
        "llama.cpp": chosen(
            "LLAMA_CACHE", cache / "llama.cpp", home / "Library" / "Caches" / "llama.cpp"
        ),
    }
    return [(program, folder) for program, folders in places.items() for folder in folders]


def _gguf_files(folder: Path) -> Iterator[Path]:
    """Those that may be models, in the order of their names."""
    for root, folders, names in os.walk(folder, followlinks=False):
        depth = len(Path(root).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < _DEEPEST else []
        for name in sorted(names):
            file = Path(root) / name
            is_model = name.lower().endswith(".gguf") and "mmproj" not in name.lower()
            # A pipe would be waited for.
            if is_model and not is_later_part(file) and file.is_file():
                yield file


def _of_ollama(folder: Path) -> Iterator[Elsewhere]:
    """Each tag names its layers by their sums; one of them is the GGUF file."""
    manifests = folder / "manifests"
    for root, folders, names in os.walk(manifests):
        folders.sort()
        for tag in sorted(names):
            manifest = Path(root) / tag
            parts = manifest.relative_to(manifests).parts
            if len(parts) < 2:
                continue
            try:
                layers = json.loads(manifest.read_text(encoding="utf-8"))["layers"]
                digests = [each["digest"] for each in layers if each["mediaType"] == _MODEL_LAYER]
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                continue
            for digest in digests[:1]:
                blob = folder / "blobs" / str(digest).replace(":", "-")
                if blob.is_file():
                    yield Elsewhere(f"{parts[-2]}:{tag}", blob, "Ollama")
