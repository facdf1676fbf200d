"""The saved presets of one home: one small JSON file, replaced as a whole or not at all."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.presets.given import MODELS_OWN, app_presets, models_own
from app.presets.preset import LONGEST_NAME, Preset, checked_name, read_preset
from app.private_file import write_private
from engine.errors import HomeError, UsageError

MOST_PRESETS = 200


class Presets:
    """All presets by name: those of the app, the model's own, and the saved ones. Owned by the
    event loop of the process that owns the home.

    Names are compared without regard to capitals. `recommended` gives what the loaded model's file
    recommends, or nothing.
    """

    def __init__(
        self, path: Path, recommended: Callable[[], Mapping[str, str]] = lambda: {}
    ) -> None:
        self._path = path
        self._recommended = recommended
        self._read: tuple[str, tuple[Preset, ...]] | None = None
        """The text of the file that was read last, and what it says: it is asked often."""

    def given(self) -> tuple[Preset, ...]:
        own = models_own(self._recommended())
        return app_presets() if own is None else (*app_presets(), own)

    def saved(self) -> tuple[Preset, ...]:
        """As they are in the file now, in the order of their names. Raises HomeError."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as error:
            raise self._damaged(str(error)) from error
        if self._read is not None and text == self._read[0]:
            return self._read[1]
        try:
            found = json.loads(text)
            presets = [read_preset(each) for each in found["presets"]]
        except (ValueError, KeyError, TypeError, RecursionError, UsageError) as error:
            # An empty list in its place would be stored over what somebody has saved.
            raise self._damaged(str(error)) from error
        self._read = text, tuple(sorted(presets, key=lambda each: each.name.casefold()))
        return self._read[1]

    def all(self) -> tuple[Preset, ...]:
        return (*self.given(), *self.saved())

    def get(self, name: str) -> Preset:
        """Raises UsageError for a name that there is not."""
        # Those that are given are there whatever became of the file.
        found = _find(self.given(), name) or _find(self.saved(), name)
        if found is None and name.casefold() == MODELS_OWN.casefold():
            raise UsageError("The file of this model recommends nothing: choose another preset.")
        if found is None:
            names = ", ".join(each.name for each in self.all())
            raise UsageError(f"There is no preset {name[:LONGEST_NAME]!r}; there are {names}.")
        return found

    def save(self, preset: Preset, *, replaces: bool = False) -> Preset:
        """Add one. A name that is taken is a UsageError unless it `replaces` the saved one."""
        preset = replace(preset, name=checked_name(preset.name), is_given=False)
        self._check_free(preset.name)
        saved = self.saved()
        old = _find(saved, preset.name)
        if old is not None and not replaces:
            raise UsageError(f"There is a preset {old.name!r} already: choose another name.")
        if old is None and len(saved) >= MOST_PRESETS:
            raise UsageError(
                f"There may be {MOST_PRESETS} saved presets: delete one that is not used."
            )
        self._write([*(each for each in saved if each is not old), preset])
        return preset

    def add(self, preset: Preset) -> Preset:
        """Save one that came in a file: under its name, or beside that when it is taken."""
        taken = {each.name.casefold() for each in self.all()} | {MODELS_OWN.casefold()}
        name, number = checked_name(preset.name), 1
        while name.casefold() in taken:
            number += 1
            end = f" {number}"
            name = preset.name[: LONGEST_NAME - len(end)].rstrip() + end
        return self.save(replace(preset, name=name))

    def rename(self, old_name: str, new_name: str) -> Preset:
        old = self._saved_one(old_name)
        new = replace(old, name=checked_name(new_name))
        self._check_free(new.name)
        saved = self.saved()
        other = _find(saved, new.name)
        if other is not None and other.name != old.name:
            raise UsageError(f"There is a preset {other.name!r} already: choose another name.")
        self._write([*(each for each in saved if each.name != old.name), new])
        return new

    def delete(self, name: str) -> None:
        old = self._saved_one(name)
        self._write([each for each in self.saved() if each.name != old.name])

    def _saved_one(self, name: str) -> Preset:
        if _find(self.given(), name) is not None:
            raise UsageError(f"{name} comes with the app or the model, and stays as it is.")
        found = _find(self.saved(), name)
        if found is None:
            raise UsageError(f"There is no saved preset {name[:LONGEST_NAME]!r} any more.")
        return found

    def _check_free(self, name: str) -> None:
        given = {each.name.casefold() for each in app_presets()} | {MODELS_OWN.casefold()}
        if name.casefold() in given:
            raise UsageError(f"{name} is a preset of the app or the model: choose another name.")

    def _write(self, presets: Sequence[Preset]) -> None:
        document: dict[str, Any] = {"presets": [each.as_json() for each in presets]}
        try:
            write_private(self._path, json.dumps(document, indent=2))
        except OSError as error:
            raise HomeError(
                f"The presets could not be saved ({error.strerror}): make room on the disk, or make"
                f" {self._path.parent} writable."
            ) from error

    def _damaged(self, reason: str) -> HomeError:
        return HomeError(
            f"The presets in {self._path} cannot be read ({reason.rstrip('.')}): correct the file,"
            " or move it away to start without saved ones."
        )


def _find(presets: Sequence[Preset], name: str) -> Preset | None:
    wanted = name.casefold()
    return next((each for each in presets if each.name.casefold() == wanted), None)
