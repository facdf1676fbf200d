"""`inglenook generate --n-beams`: the best answers by the probability of all their tokens."""

from typing import Any

from app.chat.beam_answers import FoundAnswer, find_answers, refuse_drawing
from app.chat.belonging import request_options
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.commands.question import question_of
from app.services import Services


async def search_beams(services: Services, options: Options, console: Console) -> None:
    """Write the answers, the best first, or one JSON object."""
    refuse_drawing(options.sampling)
    beams = options.beams()
    question = await question_of(services, options)
    model = question.model
    guidance = await model.guidance(question.form)
    found = await find_answers(
        model, question.prompt, beams, question.params, request_options(), guidance
    )
    if not options.json:
        for number, answer in enumerate(found.answers, start=1):
            if len(found.answers) > 1:
                console.write(f"--- {number} of {len(found.answers)}, {_scored(answer)} ---\n")
            console.write(answer.content + "\n")
        if model.notice:
            console.note(model.notice)
        return
    best, *others = map(_result, found.answers)
    more: dict[str, Any] = {"choices": [best, *others]} if others else {}
    if model.notice:
        more["notice"] = model.notice
    write_json(
        console,
        best
        | {
            "model": model.name,
            "backend": model.loaded.backend,
            "usage": found.timings.usage(),
            "timings": found.timings.as_json(),
        }
        | more,
    )


def _scored(answer: FoundAnswer) -> str:
    return f"score {answer.beam.score:.3f}"


def _result(answer: FoundAnswer) -> dict[str, Any]:
    result: dict[str, Any] = {
        "text": answer.content,
        "finish_reason": answer.beam.finish_reason.value,
        "score": answer.beam.score,
        "logprob": answer.beam.logprob,
    }
    if answer.thinking:
        result["thinking"] = answer.thinking
    return result
