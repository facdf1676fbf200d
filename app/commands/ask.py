"""`inglenook docs ask`: one answer from the files of the library, stored nowhere."""

import time
from typing import Any

from app.chat.belonging import request_options
from app.chat.chat_model import ChatModel
from app.chat.draft import turns_of
from app.chat.message import Role
from app.chat.quotations import fitted, marks_only
from app.chat.turns import Turn
from app.chat.written import Written, read_whole
from app.commands.console import Console, write_json
from app.commands.generate import notices_of
from app.commands.options import Options
from app.commands.question import preset_of, standing_of
from app.documents.citation import Citation
from app.documents.document import page_in_words
from app.documents.grounds import Grounds, nothing_found, with_marks
from app.documents.quotation import Quotation
from app.documents.quoting import quoted
from app.documents.scope import Scope
from app.services import Services
from app.visible import visible
from engine.metrics import Timings

LONGEST_QUOTE = 300
"""Characters of a quote that is shown to a person."""


async def ask(services: Services, options: Options, console: Console) -> None:
    """The answer with its numbered passages; or that nothing was found, without a model."""
    scope = Scope((options.collection,) if options.collection else (), options.files)
    # Before a model is loaded, which is not needed where nothing is found.
    grounds = await services.answering.look(options.text, scope)
    if not grounds.is_found:
        _show_nothing(grounds, options, console)
        return
    model = await services.chat_model()
    preset = await preset_of(services, options.preset)
    params = options.params(services.settings.sampling, preset)
    system, examples = standing_of(services.settings, options, preset)
    grounds = await fitted(services.answering, grounds, model, params.max_tokens)
    turn = Turn(Role.USER, options.text, lead=quoted(grounds.quotations, grounds.fence))
    prompt = await model.prompt([*turns_of(examples), turn], system, time.time())
    guidance = await marks_only(model, len(grounds.quotations))
    # Nobody's words: no KV of them is written to the disk.
    asked = request_options(is_reproducible=options.reproducible)
    with model.loaded.engine.submit(prompt, params, asked, guidance) as stream:
        written = await read_whole(stream, model.splitter())
    grounds = await services.answering.check(written.content, grounds)
    _show(model, written, grounds, options, console)


def _show(
    model: ChatModel, written: Written, grounds: Grounds, options: Options, console: Console
) -> None:
    text = with_marks(written.content, grounds).strip()
    notices = notices_of(model, written, None)
    # One that was dropped may have the number of another, and has no quote.
    shown = [each for each in grounds.citations if each.is_shown]
    if options.json:
        unfound = [written.content[slice(*each)] for each in grounds.unfound]
        result = {
            "text": text,
            "found": True,
            "citations": [_citation(each, written.content, grounds) for each in shown],
            "passages": [
                {"n": number, **_passage(each), "text": each.text}
                for number, each in grounds.numbered
            ],
            "unfound": unfound,
            "documents": grounds.num_documents,
            "model": model.name,
            "usage": written.timings.usage(),
            "timings": written.timings.as_json(),
        }
        write_json(console, result | ({"notice": " ".join(notices)} if notices else {}))
        return
    console.write(f"{text}\n")
    for number in grounds.cited:
        named = next(each for each in shown if each.number == number)
        quotation, quote = grounds.quotation_of(named), grounds.quote_of(named)
        console.write(f"\n[{number}] {_place(quotation)}\n    {_line(quote)}\n")
    for span in grounds.unfound:
        sentence = _line(written.content[slice(*span)])
        console.note(f"This was not found in the passages: {sentence}")
    for notice in notices:
        console.note(notice)


def _show_nothing(grounds: Grounds, options: Options, console: Console) -> None:
    text = nothing_found(grounds)
    if options.json:
        result: dict[str, Any] = {
            "text": text,
            "found": False,
            "citations": [],
            "passages": [],
            "nearest": [{**_passage(each), "text": each.text} for each in grounds.quotations],
            "documents": grounds.num_documents,
            "usage": Timings().usage(),
            "timings": Timings().as_json(),
        }
        write_json(console, result)
        return
    console.write(f"{text}\n")
    for each in grounds.quotations:
        console.write(f"\n{_place(each)}\n    {_line(each.text)}\n")


def _citation(citation: Citation, content: str, grounds: Grounds) -> dict[str, Any]:
    return {
        "n": citation.number,
        **_passage(grounds.quotation_of(citation)),
        "quote": grounds.quote_of(citation),
        "verdict": citation.verdict.value,
        "sentence": content[slice(*citation.sentence)],
    }


def _passage(quotation: Quotation) -> dict[str, Any]:
    return {
        "path": quotation.paths[0] if quotation.paths else "",
        "page": quotation.page,
        "page_to": quotation.page_to,
        "label": quotation.label,
        "heading": list(quotation.heading),
    }


def _place(quotation: Quotation) -> str:
    path = quotation.paths[0] if quotation.paths else quotation.title
    return visible(f"{path}, {page_in_words(quotation.page, quotation.label)}")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE].rsplit(' ', 1)[0]}…"
