"""Every command by its name, with what it needs of the home."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.commands.chats import chats
from app.commands.console import Console
from app.commands.cuda import cuda
from app.commands.docs import docs
from app.commands.doctor import doctor
from app.commands.generate import generate
from app.commands.models import models
from app.commands.options import Options
from app.commands.updates import updates
from app.models.local import find_model
from app.services import Services
from engine.backends.choice import backend_for
from engine.errors import UsageError


@dataclass(frozen=True, slots=True)
class Command:
    """`needs_history`: without a running app, the home must be owned while it works.
    `tells_of_home`: it says itself what is wrong with one that cannot be used."""

    run: Callable[[Services, Options, Console], Awaitable[None]]
    needs_history: bool
    writing: tuple[str, ...] = ()
    """Its actions that write into the home, and so must own it as well."""
    reading: tuple[str, ...] = ()
    """Its actions that answer also while another command owns the home and writes."""
    tells_of_home: bool = False

    def must_own(self, options: Options) -> bool:
        return self.needs_history or options.action in self.writing


COMMANDS: Mapping[str, Command] = {
    "generate": Command(generate, needs_history=False),
    "chats": Command(chats, needs_history=True),
    "models": Command(models, needs_history=False, writing=("add", "remove", "use")),
    "docs": Command(docs, needs_history=True, reading=("list", "status", "search")),
    "cuda": Command(cuda, needs_history=False),
    "updates": Command(updates, needs_history=False),
    "doctor": Command(doctor, needs_history=True, tells_of_home=True),
}


async def carry_out(services: Services, options: Options, console: Console) -> None:
    """Raises the InglenookError that ends the command."""
    choice = services.model.choice
    if options.model and choice.model_path != find_model(
        services.paths, services.settings, options.model
    ):
        raise UsageError(
            f"The running app uses {choice.model_path.name}: leave --model out, or quit the app"
            " first."
        )
    if options.draft_model and choice.draft_model_path != find_model(
        services.paths, services.settings, options.draft_model
    ):
        raise UsageError(
            "The running app uses another draft model, or none: leave --draft-model out, or quit"
            " the app first."
        )
    if options.adapters and choice.used_adapters != choice.find_adapters(options.adapters):
        raise UsageError(
            f"The running app answers with {services.model.name}: leave --lora out, choose the"
            ' adapter under "Models" on the page, or quit the app first.'
        )
    if options.mmproj and choice.mmproj_path != Path(options.mmproj):
        raise UsageError(
            "The running app reads pictures with another mmproj file, or not at all: leave --mmproj"
            " out, or quit the app first."
        )
    loaded = services.loaded_model
    chosen = services.model.choice
    has = backend_for(chosen.backend, chosen.model_path) if not loaded else loaded.loaded.backend
    if options.backend not in ("auto", has):
        raise UsageError(
            f"The running app computes with the backend {has}: leave --backend out, or quit the"
            " app first."
        )
    await COMMANDS[options.command].run(services, options, console)
