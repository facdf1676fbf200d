"""`inglenook generate`: one answer, stored nowhere."""

from typing import Any

from app.chat.belonging import request_options
from app.chat.chat_model import ChatModel
from app.chat.guided import Check, Checker
from app.chat.logprobs import choices_as_json
from app.chat.written import Written, read_whole
from app.commands.beams import search_beams
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.commands.question import question_of
from app.services import Services
from engine.sampling_params import for_answer

CUT_NOTICE = "The answer ended at the longest that is allowed: give --max-tokens more."


async def generate(services: Services, options: Options, console: Console) -> None:
    """Write the answer as it comes, or one JSON object at its end."""
    if options.num_beams is not None:
        await search_beams(services, options, console)
        return
    question = await question_of(services, options)
    model, prompt, params = question.model, question.prompt, question.params
    # Nobody's words: no KV of them is written to the disk.
    asked = request_options(is_reproducible=options.reproducible, num_logprobs=options.logprobs)
    guidance = await model.guidance(question.form)
    checker = Checker(guidance)
    results: list[dict[str, Any]] = []
    # One after the other: the prompt is held after the first, and each can be shown as it comes.
    for number in range(options.num_answers):
        if options.num_answers > 1 and not options.json:
            console.write(f"--- {number + 1} of {options.num_answers} ---\n")
        for tried in checker.tries(for_answer(params, number)):
            # What may have to be thrown away is not shown as it comes.
            is_shown = not options.json and not checker.is_needed
            write = console.write if is_shown else lambda piece: None
            with model.loaded.engine.submit(prompt, tried, asked, guidance) as stream:
                written = await read_whole(stream, model.splitter(), write)
            check = await checker.check(written.content)
            if check is None or check.is_right:
                break
        if options.json:
            results.append(_result(model, written, check))
            continue
        console.write(("" if is_shown else written.content) + "\n")
        for notice in notices_of(model, written, check):
            console.note(notice)
    if options.json:
        more = {"choices": results} if options.num_answers > 1 else {}
        write_json(console, results[0] | more)


def notices_of(model: ChatModel, written: Written, check: Check | None) -> list[str]:
    cut = CUT_NOTICE if written.timings.finish == "max_tokens" else ""
    notices = cut, written.notice, "" if check is None else check.notice, model.notice
    return [notice for notice in notices if notice]


def _result(model: ChatModel, written: Written, check: Check | None) -> dict[str, Any]:
    result: dict[str, Any] = {
        "text": written.content,
        "finish_reason": written.finish_reason.value,
        "model": model.name,
        "backend": model.loaded.backend,
        "usage": written.timings.usage(),
        "timings": written.timings.as_json(),
    }
    if written.thinking:
        result["thinking"] = written.thinking
    if written.choices:
        result["logprobs"] = choices_as_json(written.choices, model.loaded.tokenizer)
    if check is not None:
        result["check"] = check.as_json()
    notices = notices_of(model, written, check)
    if notices:
        result["notice"] = " ".join(notices)
    return result
