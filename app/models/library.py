"""The models of one home: which are here and how they would do, and how they come and go."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from app.amounts import bytes_in_words
from app.models.catalog import CatalogModel, catalog, in_catalog
from app.models.connections import Connections
from app.models.download import Downloads
from app.models.drop import Drops
from app.models.fit import Fit, Room, Verdict, fit, fitting_context, largest_fitting, room_now
from app.models.hub import FoundRepo, Hub, Offer, chosen_offer
from app.models.local import LocalModel, find_model, list_models, num_bytes_of
from app.models.look import Look, Looks
from app.models.mmproj import is_mmproj, mmproj_beside, own_mmproj
from app.models.outside import Outside
from app.models.pace import Pace, PaceBook
from app.models.part_file import check_room
from app.models.shelf import Brought, Shelf
from app.models.starter import starter_model
from app.models.way import DownloadState
from app.paths import Paths
from app.settings import Settings
from engine.backends.llama_cpp.adapter_file import check_adapter_file, is_adapter_file
from engine.backends.llama_cpp.chat_file import check_chat_file
from engine.backends.llama_cpp.own_part import give_name, own_part, sweep_parts
from engine.backends.llama_cpp.split_file import model_name, parts_of
from engine.config import EngineConfig
from engine.errors import HomeError, InglenookError, InvalidParams, ModelNotFound, UsageError


@dataclass(frozen=True, slots=True)
class Listed:
    """A model or an adapter here, with what its header says. `fit` None: it is an adapter, or a
    model that cannot be used, and `look` says why."""

    model: LocalModel
    look: Look
    fit: Fit | None


@dataclass(frozen=True, slots=True)
class Available:
    """A model of the catalogue in one quantisation. `instead`: what fits where this does not, or
    empty."""

    model: CatalogModel
    quantization: str
    num_bytes: int
    fit: Fit
    instead: str


class ModelLibrary:
    """Owned by the event loop. `given_back`: the bytes that the loaded model would give back."""

    def __init__(
        self,
        paths: Paths,
        settings: Callable[[], Settings],
        given_back: Callable[[], int] = lambda: 0,
    ) -> None:
        self._paths = paths
        self._settings = settings
        self._given_back = given_back
        self._looking = asyncio.Lock()
        self.shelf = Shelf(paths.shelf)
        self.connections = Connections(paths.connections)

    @cached_property
    def looks(self) -> Looks:
        return Looks(self._paths.looks)

    @cached_property
    def _outside(self) -> Outside:
        return Outside(self.connections)

    @cached_property
    def hub(self) -> Hub:
        return Hub(self._outside)

    @cached_property
    def downloads(self) -> Downloads:
        return Downloads(self._paths.models, self._outside, self._note_brought)

    @cached_property
    def drops(self) -> Drops:
        """Deletes what a process before this one left half."""
        return Drops(self._paths.models, self._note_dropped, self._is_downloading)

    @property
    def has_downloads(self) -> bool:
        """Whether there is anything to pause at the end."""
        return "downloads" in self.__dict__

    @cached_property
    def _paces(self) -> PaceBook:
        return PaceBook(self._paths)

    def pace(self) -> Pace | None:
        return self._paces.kept()

    async def measure_pace(self) -> Pace | None:
        """That of this machine, measured now if it was not before: some seconds, once. None: it
        cannot be measured."""
        try:
            return await asyncio.to_thread(self._paces.known, starter_model())
        except (InglenookError, OSError):
            return None

    def room(self) -> Room:
        return room_now(self._given_back())

    async def here(self) -> list[Listed]:
        """All models here. Raises HomeError where the list itself cannot be read."""
        async with self._looking:
            return await asyncio.to_thread(self._here, self.pace(), self.room())

    def _here(self, pace: Pace | None, room: Room) -> list[Listed]:
        listed = []
        for model in list_models(self._paths, self._settings()):
            look = self.looks.at(model.path)
            listed.append(Listed(model, look, self._fit(model.path, look, room, pace)))
        return listed

    def fit_of(self, path: Path, look: Look) -> Fit | None:
        """How a file that was looked at would do now; None for one that cannot be used."""
        return self._fit(path, look, self.room(), self.pace())

    def _fit(self, path: Path, look: Look, room: Room, pace: Pace | None) -> Fit | None:
        if look.shape is None:
            return None
        config = self.config(path)
        try:
            return fit(look.shape, config, room, pace)
        except InvalidParams:
            # Such as a KV type for which its heads have no room; loading says so.
            return fit(look.shape, EngineConfig(model_path=path), room, pace)

    def config(self, path: Path) -> EngineConfig:
        """How it would be loaded now."""
        return self._settings().engine_config(path)

    def instead(self, listed: Listed) -> str:
        """What would fit where a model that is here does not, as a sentence; else empty."""
        if listed.look.shape is None or listed.fit is None or listed.fit.verdict is not Verdict.NOT:
            return ""
        config = self.config(listed.model.path)
        tokens = fitting_context(listed.look.shape, config, self.room())
        if tokens is not None:
            return f"It fits with a context of {tokens:,} tokens."
        best = self.largest_of_catalog()
        return f"Of the catalogue, {best} fits." if best else ""

    def available(self, models: Sequence[CatalogModel]) -> list[Available]:
        """How each of them would do here, in every quantisation."""
        room, pace, config = self.room(), self.pace(), self._usual_config()
        best = self.largest_of_catalog()
        found = []
        for model in models:
            shapes = {name: model.shape(name) for name in model.sizes}
            coarser = largest_fitting(shapes.items(), config, room)
            for name, shape in shapes.items():
                how = fit(shape, config, room, pace)
                instead = coarser or best if how.verdict is Verdict.NOT else ""
                found.append(Available(model, name, model.num_bytes(name), how, instead))
        return found

    def largest_of_catalog(self) -> str:
        """The largest model that fits in its usual quantisation; empty where none does."""
        choices = ((model.name, model.shape(model.usual)) for model in catalog())
        return largest_fitting(choices, self._usual_config(), self.room())

    def _usual_config(self) -> EngineConfig:
        """As any model would be loaded."""
        context = self._settings().context_tokens
        return EngineConfig(model_path=Path("model.gguf"), context_tokens=context)

    def add(self, path: Path, *, is_copied: bool = False) -> LocalModel:
        """Let a model or an adapter be found by its name from now on; copied into the models
        folder or left where it is. Raises the ModelError that says why it cannot be used. Blocks
        while it copies."""
        path = _first_part(path)
        if is_adapter_file(path):
            check_adapter_file(path)
        else:
            check_chat_file(path)
        if is_copied:
            path = self._copy(path)
        elif path.parent != self._paths.models:
            self.shelf.note_added(path)
        return next(
            each for each in list_models(self._paths, self._settings()) if _same(each.path, path)
        )

    def find(self, name: str) -> LocalModel:
        """The model of a name or a path. Raises ModelNotFound."""
        path = find_model(self._paths, self._settings(), name)
        for each in list_models(self._paths, self._settings()):
            if each.path == path:
                return each
        raise ModelNotFound(
            f"There is no model {name!r} here: `inglenook models list` names those that are."
        )

    def find_one(self, name: str) -> LocalModel:
        """As `find`, for what cannot be undone. Raises UsageError where several have this name:
        which of them has it changes as they come and go."""
        model = self.find(name)
        if Path(name).expanduser().is_absolute():
            return model
        listed = list_models(self._paths, self._settings())
        alike = [each for each in listed if model_name(each.path) == model_name(model.path)]
        if len(alike) > 1:
            places = ", ".join(str(each.path) for each in alike)
            raise UsageError(
                f"{len(alike)} models are called {model_name(model.path)!r}: name the one you mean"
                f" by its path ({places})."
            )
        return model

    def take(self, name: str) -> LocalModel:
        """As `find`; a file that is only given by its path is added. Raises the ModelError that
        says why it cannot be used."""
        path = Path(name).expanduser()
        known = find_model(self._paths, self._settings(), name)
        if path.exists() and not any(
            _same(each.path, known) for each in list_models(self._paths, self._settings())
        ):
            return self.add(path)
        return self.find(name)

    def check_removal(self, model: LocalModel) -> str:
        """What removing it does, as a question. Raises UsageError where that is not for us."""
        if model.is_ours:
            size = bytes_in_words(num_bytes_of(model.path))
            return f"Delete {model.name} ({size}) from the disk?"
        if model.can_be_removed:
            return f"Forget where {model.name} is? The file stays at {model.path}."
        if model.is_starter:
            raise UsageError("The starter model comes with the app and cannot be removed.")
        raise UsageError(
            f"{model.name} was not brought by this app ({model.source}), so it is not deleted:"
            f" remove {model.path} yourself."
        )

    def remove(self, model: LocalModel) -> None:
        """Delete what we brought, forget what was added."""
        self.check_removal(model)
        if model.is_ours:
            try:
                # Without its first part the model is gone for everybody.
                for part in (*parts_of(model.path), own_mmproj(model.path)):
                    part.unlink(missing_ok=True)
            except OSError as error:
                raise HomeError(
                    f"{model.path} could not be deleted ({error.strerror}): close what uses it, or"
                    " delete it yourself."
                ) from error
        self.shelf.forget(model.path)

    async def search(self, text: str) -> list[FoundRepo]:
        """Asks Hugging Face."""
        return await self.hub.search(text)

    async def offers(self, name: str) -> list[Offer]:
        """The files of a name of the catalogue or of Hugging Face. Asks Hugging Face."""
        entry = in_catalog(name)
        if entry is None and "/" not in name:
            raise UsageError(
                f"The catalogue has no {name!r}: `inglenook models list --available` shows it; a"
                " name at Hugging Face has the form OWNER/NAME."
            )
        return await self.hub.offers(name if entry is None else entry.repo)

    async def download(self, name: str, quantization: str = "") -> str:
        """Begin it, or go on with it; gives the name it will have here. Asks Hugging Face."""
        entry = in_catalog(name)
        offers = await self.offers(name)
        wanted = quantization
        if not wanted and entry is not None:
            usual = {entry.usual, entry.usual.replace("Q4", "Q4_K_M")}
            wanted = next((each.quantization for each in offers if each.quantization in usual), "")
        return await self.downloads.begin(chosen_offer(offers, wanted))

    async def close(self) -> None:
        if self.has_downloads:
            await self.downloads.close()

    def _note_brought(self, path: Path, offer: Offer) -> None:
        self.shelf.note_brought(Brought(path.name, offer.repo, offer.quantization))

    def _note_dropped(self, path: Path) -> None:
        self.shelf.note_brought(Brought(path.name))

    def _is_downloading(self, name: str) -> bool:
        return any(
            each.name == Path(name).stem and each.state is not DownloadState.DONE
            for each in self.downloads.all()
        )

    def _copy(self, path: Path) -> Path:
        folder = self._paths.models
        sources = parts_of(path)
        targets = [folder / part.name for part in sources]
        mmproj = mmproj_beside(path)
        if mmproj is not None:
            # It goes by our name for it there, beside other models.
            sources = [*sources, mmproj]
            targets = [*targets, own_mmproj(targets[0])]
        if any(target.exists() for target in targets):
            raise UsageError(f"{path.name} is in the models folder already: remove it first.")
        check_room(folder, sum(source.stat().st_size for source in sources))
        named: list[Path] = []
        try:
            for source, target in zip(reversed(sources), reversed(targets), strict=True):
                sweep_parts(target)
                shutil.copyfile(source, own_part(target))
                # A file that has got the name meanwhile keeps it.
                give_name(own_part(target), target)
                named.append(target)
        except BaseException as error:
            for left in (*map(own_part, targets), *named):
                with suppress(OSError):
                    left.unlink(missing_ok=True)
            if not isinstance(error, OSError):
                raise
            raise HomeError(
                f"{path.name} could not be copied ({error.strerror}): make room on the disk, or"
                " leave --copy out."
            ) from error
        self.shelf.note_brought(Brought(targets[0].name))
        return targets[0]


def _first_part(path: Path) -> Path:
    """What was meant: the one model in a folder, the first part of several."""
    path = path.expanduser().absolute()
    if path.is_dir():
        files = [each for each in sorted(path.glob("*.gguf")) if each.is_file()]
        models = [each for each in files if each == parts_of(each)[0] and not is_mmproj(each)]
        if len(models) > 1:
            names = ", ".join(each.name for each in models[:5])
            raise UsageError(f"{path} has {len(models)} models: name one of them ({names}).")
        return models[0] if models else path
    return parts_of(path)[0]


def _same(one: Path, other: Path) -> bool:
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False
