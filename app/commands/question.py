"""What `generate` asks: the options, the preset that they name, and the settings in one."""

import time
from dataclasses import dataclass
from typing import TypeVar

from app.chat.chat_model import ChatModel
from app.chat.draft import turns_of
from app.chat.message import Role
from app.chat.turns import Turn
from app.commands.options import Options
from app.presets.given import MODELS_OWN
from app.presets.preset import Preset
from app.services import Services
from engine.guided.grammar import Grammar
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
    preset = await _preset(services, options.preset)
    params = options.params(settings.sampling, preset)
    model = await services.chat_model()
    system = options.system or settings.default_system_prompt
    examples = settings.default_examples
    form = options.form()
    if preset is not None:
        system = options.system or _given(preset.system_prompt, system)
        examples = _given(preset.examples, examples)
        form = form or (preset.form.grammar if preset.form else None)
    turns = [*turns_of(examples), Turn(Role.USER, options.text)]
    return Question(model, await model.prompt(turns, system, time.time()), params, form)


async def _preset(services: Services, name: str) -> Preset | None:
    if not name:
        return None
    if name.casefold() == MODELS_OWN.casefold():
        # Only the loaded model knows it.
        await services.chat_model()
    return services.presets.get(name)


def _given(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value
