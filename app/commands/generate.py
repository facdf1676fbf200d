"""`inglenook generate`: one answer, stored nowhere."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.chat.belonging import request_options
from app.chat.chat_model import ChatModel
from app.chat.guided import Check, Checker
from app.chat.logprobs import choices_as_json
from app.chat.message import Role
from app.chat.thinking import ThinkingSplitter
from app.chat.turns import Turn
from app.commands.beams import search_beams
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.services import Services
from engine.async_engine import OutputStream
from engine.logprobs import TokenChoice
from engine.request import RequestOutput
from engine.sampling_params import for_answer


async def generate(services: Services, options: Options, console: Console) -> None:
    """Write the answer as it comes, or one JSON object at its end."""
    if options.num_beams:
        await search_beams(services, options, console)
        return
    params = options.params(services.settings.sampling)
    model = await services.chat_model()
    system = options.system or services.settings.default_system_prompt
    prompt = await model.prompt([Turn(Role.USER, options.text)], system, time.time())
    # Nobody's words: no KV of them is written to the disk.
    asked = request_options(is_reproducible=options.reproducible, num_logprobs=options.logprobs)
    guidance = await model.guidance(options.form())
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
