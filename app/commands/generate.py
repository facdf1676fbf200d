"""`inglenook generate`: one answer, stored nowhere."""

import time
from typing import Any

from app.chat.belonging import request_options
from app.chat.chat_model import ChatModel
from app.chat.message import Role
from app.chat.turns import Turn
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.services import Services
from engine.request import RequestOutput


async def generate(services: Services, options: Options, console: Console) -> None:
    """Write the answer as it comes, or one JSON object at its end."""
    params = options.params(services.settings.sampling)
    model = await services.chat_model()
    system = options.system or services.settings.default_system_prompt
    prompt = await model.prompt([Turn(Role.USER, options.text)], system, time.time())
    splitter = model.splitter()
    content: list[str] = []
    thinking: list[str] = []
    last: RequestOutput | None = None
    # Nobody's words: no KV of them is written to the disk.
    asked = request_options(is_reproducible=options.reproducible)
    with model.loaded.engine.submit(prompt, params, asked) as stream:
        async for last in stream:
            pieces = [splitter.feed(last.text)]
            if last.finish_reason is not None:
                pieces.append(splitter.finish())
            for thought, answer in pieces:
                thinking.append(thought)
                content.append(answer)
                if answer and not options.json:
                    console.write(answer)
    assert last is not None
    if options.json:
        write_json(console, _result(model, last, "".join(content), "".join(thinking)))
        return
    console.write("\n")
    for notice in filter(None, (last.notice, model.notice)):
        console.note(notice)


def _result(model: ChatModel, last: RequestOutput, content: str, thinking: str) -> dict[str, Any]:
    assert last.finish_reason is not None and last.timings is not None
    result = {
        "text": content,
        "finish_reason": last.finish_reason.value,
        "model": model.name,
        "backend": model.loaded.backend,
        "usage": last.timings.usage(),
        "timings": last.timings.as_json(),
    }
    if thinking:
        result["thinking"] = thinking
    notices = [notice for notice in (last.notice, model.notice) if notice]
    if notices:
        result["notice"] = " ".join(notices)
    return result
