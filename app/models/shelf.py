"""Which model files of this home are ours, and which are only known here: `models.json` in data.

brought   downloaded or copied by us, in the models folder: removing deletes the file
added     lie where the user has them: removing forgets the path and leaves the file
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.private_file import write_private
from engine.errors import HomeError


@dataclass(frozen=True, slots=True)
class Brought:
    """A file in the models folder, by the name of its first part. `repo` empty: it was copied."""

    file: str
    repo: str = ""
    quantization: str = ""


class Shelf:
    """Read at every call: a command may have changed it. Owned by whoever owns the home."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def brought(self) -> list[Brought]:
        found = []
        for each in self._read().get("brought", ()):
            if isinstance(each, dict) and isinstance(each.get("file"), str):
                repo, quantization = str(each.get("repo", "")), str(each.get("quantization", ""))
                found.append(Brought(each["file"], repo, quantization))
        return found

    def added(self) -> list[Path]:
        return [Path(each) for each in self._read().get("added", ()) if isinstance(each, str)]

    def note_brought(self, brought: Brought) -> None:
        others = [each for each in self.brought() if each.file != brought.file]
        self._write([*others, brought], self.added())

    def note_added(self, path: Path) -> None:
        if path not in self.added():
            self._write(self.brought(), [*self.added(), path])

    def forget(self, path: Path) -> None:
        """Both a path and a file of the models folder; one that is not known is no fault."""
        brought = [each for each in self.brought() if each.file != path.name]
        self._write(brought, [each for each in self.added() if each != path])

    def _read(self) -> dict[str, Any]:
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise HomeError(
                f"The list of models in {self._path} cannot be read ({error}): correct the file, or"
                " delete it; the models themselves stay."
            ) from error
        return values if isinstance(values, dict) else {}

    def _write(self, brought: list[Brought], added: list[Path]) -> None:
        values = {"brought": [asdict(each) for each in brought], "added": list(map(str, added))}
        try:
            write_private(self._path, json.dumps(values, indent=1))
        except OSError as error:
            raise HomeError(
                f"The list of models in {self._path} cannot be written ({error.strerror}): make"
                " room on the disk, or make the file writable."
            ) from error
