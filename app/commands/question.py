"""What `generate` asks: the options, the preset that they name, and the settings in one. `docs ask`
takes its prompt from the same places."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from app.chat.chat_model import ChatModel
from app.chat.draft import turns_of
from app.chat.example import Example
from app.chat.message import Role
from app.chat.senses import check_readable
from app.chat.turns import Turn
from app.commands.options import Options
from app.media.attachment import attachment_from
from app.presets.given import MODELS_OWN
from app.presets.preset import Preset
from app.services import Services
from app.settings import Settings
from engine.guided.grammar import Grammar
from engine.media import Media, MediaKind
from engine.sampling_params import SamplingParams

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """Ready for the engine."""

    model: ChatModel
    prompt: list[int]
    params: SamplingParams
    form: Grammar | None


async def question_of(services: Services, options: Options) -> Question:
    """What was given counts first, then the preset, then the settings."""
    settings = services.settings
    preset = await preset_of(services, options.preset)
    params = options.params(settings.sampling, preset)
    model = await services.chat_model()
    system, examples = standing_of(settings, options, preset)
    form = options.form()
    if preset is not None:
        form = form or (preset.form.grammar if preset.form else None)
    media = await _media(model, options)
    turns = [*turns_of(examples), Turn(Role.USER, options.text, media=media)]
    return Question(model, await model.prompt(turns, system, time.time()), params, form)


def standing_of(
    settings: Settings, options: Options, preset: Preset | None
) -> tuple[str, tuple[Example, ...]]:
    """What stands before the question: a system prompt, and examples."""
    system, examples = settings.default_system_prompt, settings.default_examples
    if preset is not None:
        system = _given(preset.system_prompt, system)
        examples = _given(preset.examples, examples)
    return options.system or system, examples


async def _media(model: ChatModel, options: Options) -> tuple[Media, ...]:
    """What is shown with the text. Raises UsageError."""
    files = [(Path(each), MediaKind.IMAGE) for each in options.images]
    files += [(Path(each), MediaKind.AUDIO) for each in options.sounds]
    # Before anything is read: it takes a while.
    check_readable(model.loaded.info, [kind for _, kind in files])
    attachments = [await asyncio.to_thread(attachment_from, *each) for each in files]
    return tuple(each.media for each in attachments)


async def preset_of(services: Services, name: str) -> Preset | None:
    if not name:
        return None
    if name.casefold() == MODELS_OWN.casefold():
        # Only the loaded model knows it.
        await services.chat_model()
    return services.presets.get(name)


def _given(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value
