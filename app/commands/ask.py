"""`inglenook docs ask`: one answer from the files of the library, stored nowhere."""

import time
from dataclasses import dataclass, replace
from typing import Any

from app.amounts import bytes_in_words
from app.chat.belonging import document_source, request_options
from app.chat.chat_model import ChatModel
from app.chat.draft import Draft
from app.chat.message import unstored
from app.chat.quotations import fitted, marks_only
from app.chat.whole_progress import WholeProgress
from app.chat.whole_reading import reading_of
from app.chat.written import Written, read_whole
from app.commands.console import Console, write_json
from app.commands.generate import notices_of
from app.commands.options import Options
from app.commands.question import preset_of, standing_of
from app.documents.citation import Citation
from app.documents.claims import MARK
from app.documents.document import page_in_words
from app.documents.grounds import Grounds, nothing_found, with_marks
from app.documents.quotation import Quotation
from app.documents.scope import Scope
from app.documents.whole_text import WholeText
from app.services import Services
from app.visible import visible
from engine.errors import UsageError
from engine.kv.segment import Belonging
from engine.metrics import Timings
from engine.sampling_params import SamplingParams

LONGEST_QUOTE = 300
"""Characters of a quote that is shown to a person."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Ready for the engine; `read` is the document that stands whole in the prompt."""

    model: ChatModel
    draft: Draft
    params: SamplingParams
    grounds: Grounds
    read: WholeText | None = None

    @property
    def num_passages(self) -> int:
        return len(self.grounds.quotations if self.read is None else self.read.parts)


async def ask(services: Services, options: Options, console: Console) -> None:
    """The answer with its numbered passages; or that nothing was found, without a model."""
    await _check(services, options)
    scope = Scope((options.collection,) if options.collection else (), options.files, options.whole)
    asked = await _whole(services, scope, options, console) if options.whole else None
    if asked is None:
        # Before a model is loaded, which is not needed where nothing is found.
        grounds = await services.answering.look(options.text, scope)
        if not grounds.is_found:
            _show_nothing(grounds, options, console)
            return
        model, params, draft = await _draft(services, options)
        grounds = await fitted(services.answering, grounds, model, params.max_tokens)
        asked = Asked(model, replace(draft, grounds=grounds), params, grounds)
    model = asked.model
    prompt = await asked.draft.token_ids()
    guidance = await marks_only(model, asked.num_passages)
    # Nobody's words: no KV of them is written to the disk.
    nobody = request_options(is_reproducible=options.reproducible)
    with model.loaded.engine.submit(prompt, asked.params, nobody, guidance) as stream:
        written = await read_whole(stream, model.splitter())
    grounds = await services.answering.check(written.content, asked.grounds, asked.read)
    _show(model, written, grounds, options, console)


async def _check(services: Services, options: Options) -> None:
    """Raises UsageError for what a model would be asked with, though nothing may be found."""
    options.params(services.settings.sampling, await preset_of(services, options.preset))
    if options.model and not services.model_path.exists():
        raise UsageError(
            f"There is no model {options.model!r} here: `inglenook models list` names those that"
            " are."
        )


async def _draft(services: Services, options: Options) -> tuple[ChatModel, SamplingParams, Draft]:
    model = await services.chat_model()
    preset = await preset_of(services, options.preset)
    params = options.params(services.settings.sampling, preset)
    system, examples = standing_of(services.settings, options, preset)
    conversation = replace(unstored(system, examples), created_at=time.time())
    return model, params, Draft(model, conversation, (), options.text)


async def _whole(
    services: Services, scope: Scope, options: Options, console: Console
) -> Asked | None:
    """The document is read, and stays for the next question. None: it is searched, and that is
    said."""
    model, params, draft = await _draft(services, options)
    reading = await reading_of(draft, scope, params.max_tokens, services.answering)
    if isinstance(reading, str):
        if reading:
            console.note(reading)
        return None
    size = bytes_in_words(reading.grounds.num_tokens * model.loaded.info.kv_bytes_per_token)
    console.note(
        f"{visible(reading.read.whole.name)} is read whole: {reading.grounds.num_tokens:,} tokens,"
        f" {size} of memory."
    )
    draft, belonging = await reading.applied(draft)
    prefix = (await draft.token_ids())[: belonging.num_source_tokens]
    progress = WholeProgress(reading.read, len(prefix))
    source = Belonging(owner=document_source(reading.read.whole.sha256), is_durable=True)
    kept = request_options(is_reproducible=options.reproducible, is_preparation=True)
    with model.loaded.engine.submit(prefix, params, replace(kept, belonging=source)) as stream:
        async for output in stream:
            if said := progress.after(output.num_prompt_tokens_read):
                console.progress(said)
    return Asked(model, draft, params, reading.grounds, reading.read)


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
            "whole": grounds.whole is not None,
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
    unfound = [_line(written.content[slice(*each)]) for each in grounds.unfound]
    # Small models turn in a circle: what they say again is told once, whatever it was marked with.
    once = {MARK.sub("", each): each for each in reversed(unfound)}
    for sentence in reversed(once.values()):
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
