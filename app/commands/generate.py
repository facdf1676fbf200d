"""`inglenook generate`: one answer, stored nowhere."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from app.chat.belonging import request_options
from app.chat.chat_model import ChatModel
from app.chat.draft import turns_of
from app.chat.guided import Check, Checker
from app.chat.logprobs import choices_as_json
from app.chat.message import Role
from app.chat.thinking import ThinkingSplitter
from app.chat.turns import Turn
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.presets.given import MODELS_OWN
from app.presets.preset import Preset
from app.services import Services
from engine.async_engine import OutputStream
from engine.logprobs import TokenChoice
from engine.request import RequestOutput
from engine.sampling_params import for_answer

T = TypeVar("T")


async def generate(services: Services, options: Options, console: Console) -> None:
    """Write the answer as it comes, or one JSON object at its end."""
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
    prompt = await model.prompt(turns, system, time.time())
    # Nobody's words: no KV of them is written to the disk.
    asked = request_options(is_reproducible=options.reproducible, num_logprobs=options.logprobs)
    guidance = await model.guidance(form)
    checker = Checker(guidance)
    results: list[dict[str, Any]] = []
    # One after the other: the prompt is held after the first, and each can be shown as it comes.
    for number in range(options.num_answers):
        if options.num_answers > 1 and not options.json:
            console.write(f"--- {number + 1} of {options.num_answers} ---\n")
        for tried in checker.tries(for_answer(params, number)):
            # What may have to be thrown away is not shown as it comes.
            write = None if options.json or checker.is_needed else console.write
            with model.loaded.engine.submit(prompt, tried, asked, guidance) as stream:
                written = await _read(stream, model.splitter(), write)
            # A pattern of somebody else's may take its time.
            check = await asyncio.to_thread(checker.check, written.content)
            if check is None or not check.fault:
                break
        if options.json:
            results.append(_result(model, written, check))
            continue
        console.write((written.content if write is None else "") + "\n")
        for notice in _notices(model, written, check):
            console.note(notice)
    if options.json:
        more = {"choices": results} if options.num_answers > 1 else {}
        write_json(console, results[0] | more)


async def _preset(services: Services, name: str) -> Preset | None:
    if not name:
        return None
    if name.casefold() == MODELS_OWN.casefold():
        # Only the loaded model knows it.
        await services.chat_model()
    return services.presets.get(name)


def _given(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value


@dataclass(frozen=True, slots=True)
class Written:
    """An answer with the last output of the engine."""

    content: str
    thinking: str
    choices: tuple[TokenChoice, ...]
    last: RequestOutput


async def _read(
    stream: OutputStream, splitter: ThinkingSplitter, write: Callable[[str], None] | None
) -> Written:
    content: list[str] = []
    thinking: list[str] = []
    choices: list[TokenChoice] = []
    last: RequestOutput | None = None
    async for last in stream:
        choices += last.choices
        pieces = [splitter.feed(last.text)]
        if last.finish_reason is not None:
            pieces.append(splitter.finish())
        for thought, answer in pieces:
            thinking.append(thought)
            content.append(answer)
            if answer and write is not None:
                write(answer)
    assert last is not None
    return Written("".join(content), "".join(thinking), tuple(choices), last)


def _notices(model: ChatModel, written: Written, check: Check | None) -> list[str]:
    notices = written.last.notice, "" if check is None else check.notice, model.notice
    return [notice for notice in notices if notice]


def _result(model: ChatModel, written: Written, check: Check | None) -> dict[str, Any]:
    last = written.last
    assert last.finish_reason is not None and last.timings is not None
    result: dict[str, Any] = {
        "text": written.content,
        "finish_reason": last.finish_reason.value,
        "model": model.name,
        "backend": model.loaded.backend,
        "usage": last.timings.usage(),
        "timings": last.timings.as_json(),
    }
    if written.thinking:
        result["thinking"] = written.thinking
    if written.choices:
        result["logprobs"] = choices_as_json(written.choices, model.loaded.tokenizer)
    if check is not None:
        result["check"] = {"valid": not check.fault, "fault": check.fault}
    notices = _notices(model, written, check)
    if notices:
        result["notice"] = " ".join(notices)
    return result
