"""Where the app keeps things: four folders, all under one place when INGLENOOK_HOME says so."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from engine.errors import HomeError

APP_NAME = "inglenook"


@dataclass(frozen=True, slots=True)
class Paths:
    """`data` is the user's and must be backed up; `cache` may be deleted at any time."""

    data: Path
    cache: Path
    models: Path
    logs: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Paths":
        """Raises HomeError where neither INGLENOOK_HOME nor the system knows a place."""
        home = environment.get("INGLENOOK_HOME")
        if home:
            # Unlike pathlib's, this one leaves a user it does not know as it is.
            root = Path(os.path.expanduser(home)).absolute()
            return cls(root / "data", root / "cache", root / "models", root / "logs")
        try:
            data = Path(platformdirs.user_data_dir(APP_NAME, appauthor=False))
            cache = Path(platformdirs.user_cache_dir(APP_NAME, appauthor=False))
            logs = Path(platformdirs.user_log_dir(APP_NAME, appauthor=False))
        except RuntimeError as error:
            raise HomeError(
                "This user has no home folder: name one with HOME, or choose a place for Inglenook"
                " alone with INGLENOOK_HOME."
            ) from error
        return cls(data, cache, data / "models", logs)

    @property
    def own(self) -> tuple[Path, ...]:
        """What is never read as one of the user's own files: keys and chats lie there."""
        return (self.data, self.cache, self.models, self.logs)

    @property
    def database(self) -> Path:
        return self.data / "history.sqlite3"

    @property
    def documents(self) -> Path:
        """What was read of the user's own files, with the places that were added and the
        collections; when it is missing, it is read again once the places are added again."""
        return self.data / "documents.sqlite3"

    @property
    def received(self) -> Path:
        """Copies of documents that were dropped on the page; may be missing."""
        return self.data / "received"

    @property
    def settings(self) -> Path:
        return self.data / "settings.json"

    @property
    def presets(self) -> Path:
        """The saved presets; may be missing."""
        return self.data / "presets.json"

    @property
    def shelf(self) -> Path:
        """Which models were downloaded or added; may be missing."""
        return self.data / "models.json"

    @property
    def connections(self) -> Path:
        """Every connection to another machine; may be missing."""
        return self.data / "connections.jsonl"

    @property
    def looks(self) -> Path:
        """What was seen in model files; may be missing."""
        return self.cache / "models.json"

    @property
    def embedders(self) -> Path:
        """Embedding models, in the form that is computed with; may be missing."""
        return self.cache / "embedders"

    @property
    def grammars(self) -> Path:
        """Forms for answers that the user has made; may be missing."""
        return self.data / "grammars"

    @property
    def api_key(self) -> Path:
        return self.data / "api-key"

    @property
    def lock(self) -> Path:
        return self.data / "owner.lock"

    @property
    def owner(self) -> Path:
        """Where the running app says how it can be reached."""
        return self.data / "owner.json"

    @property
    def launcher_lock(self) -> Path:
        return self.data / "launcher.lock"

    @property
    def launcher(self) -> Path:
        """Where the launcher says how it can be reached while the app does not answer."""
        return self.data / "launcher.json"

    @property
    def native_log(self) -> Path:
        """What the app and its libraries write to standard error, and the frames of a crash."""
        return self.logs / "native.log"

    @property
    def crashes(self) -> Path:
        """The last crashes, as the launcher saw them."""
        return self.logs / "crashes.json"

    @property
    def browser(self) -> Path:
        """The profile of the app's own window."""
        return self.cache / "window"

    @property
    def cuda(self) -> Path:
        """The Python environment for the graphics card; may be missing."""
        return self.data / "cuda"

    @property
    def kv(self) -> Path:
        """Where what was read of conversations outlives the process."""
        return self.cache / "kv"

    def create(self) -> None:
        """Make the folders, and what is missing above them, readable by this user only."""
        for folder in self.own:
            try:
                # `parents=True` would give those above it the mode of every new folder.
                for place in (*reversed(folder.parents), folder):
                    place.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise HomeError(
                    f"The folder {folder} cannot be made ({error.strerror}): make it writable or"
                    " choose another place with INGLENOOK_HOME."
                ) from error
        if not os.access(self.data, os.W_OK):
            raise HomeError(
                f"The folder {self.data} cannot be written: make it writable or choose another"
                " place with INGLENOOK_HOME."
            )
