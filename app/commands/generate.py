"""`inglenook generate`: one answer, stored nowhere."""

import time

from app.chat.message import Message, Role
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.services import Services
from engine.request import RequestOutput


async def generate(services: Services, options: Options, console: Console) -> None:
    """Write the answer as it comes, or one JSON object at its end."""
    params = options.params(services.settings.sampling)
    model = await services.chat_model()
    message = Message(
        message_id="",
        conversation_id="",
        parent_id=None,
        role=Role.USER,
        content=options.text,
        created_at=time.time(),
    )
    system = options.system or services.settings.default_system_prompt
    prompt = await model.prompt([message], system, message.created_at)
    splitter = model.splitter()
    content: list[str] = []
    thinking: list[str] = []
    last: RequestOutput | None = None
    with model.loaded.engine.submit(prompt, params) as stream:
        async for last in stream:
            pieces = [splitter.feed(last.text)]
            if last.finish_reason is not None:
                pieces.append(splitter.finish())
            for thought, answer in pieces:
                thinking.append(thought)
                content.append(answer)
                if answer and not options.json:
                    console.write(answer)
    assert last is not None and last.finish_reason is not None and last.timings is not None
    if options.json:
        result = {
            "text": "".join(content),
            "finish_reason": last.finish_reason.value,
            "model": model.name,
            "backend": model.loaded.backend,
            "usage": last.timings.usage(),
            "timings": last.timings.as_json(),
        }
        if any(thinking):
            result["thinking"] = "".join(thinking)
        if last.notice:
            result["notice"] = last.notice
        write_json(console, result)
        return
    console.write("\n")
    if last.notice:
        console.note(last.notice)
