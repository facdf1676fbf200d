"""`inglenook docs sum-up`: a summary of one file, section by section, stored nowhere."""

import time

from app.chat.belonging import request_options
from app.chat.digest import IN_SHORT_HEADING, Digest, digest_of, progress
from app.chat.measured import together
from app.chat.quotations import marks_only
from app.chat.written import Written, read_whole
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.commands.question import standing_of
from app.documents.scope import Scope
from app.services import Services
from engine.errors import UsageError
from engine.metrics import Timings

NOT_ONE = (
    "One file is summed up at a time, and there is none with text at that place, or more than one:"
    " name one file of the library; `inglenook docs add PATH` takes one in."
)


async def sum_up(services: Services, options: Options, console: Console) -> None:
    """Each section as soon as it is summed up; at last all of them in short."""
    read = await services.answering.whole(Scope(paths=options.files))
    if read is None:
        raise UsageError(NOT_ONE)
    model = await services.chat_model()
    system, _ = standing_of(services.settings, options, None)
    params = services.settings.sampling
    digest = await digest_of(model, read, params, system, time.time())
    began = time.monotonic()
    summaries: list[str] = []
    measured: list[Timings] = []
    rows: list[dict[str, str | int]] = []
    for number, section in enumerate(digest.sections, start=1):
        console.note(progress(digest, number, time.monotonic() - began))
        written = await _ask(digest, await digest.prompt_of(section), options)
        measured.append(written.timings)
        text = f"{section.heading}. {written.content.strip()}"
        summaries.append(text)
        pages = {"page": section.parts[0].page, "page_to": section.parts[-1].page_to}
        rows.append({**pages, "text": written.content.strip()})
        if not options.json:
            console.write(f"{text}\n\n")
    short = await digest.prompt_in_short(summaries)
    in_short = ""
    if short is not None:
        written = await _ask(digest, short, options)
        measured.append(written.timings)
        in_short = written.content.strip()
    if options.json:
        timings = together(measured)
        result = {"sections": rows, "text": in_short, "model": model.name}
        write_json(console, result | {"usage": timings.usage(), "timings": timings.as_json()})
    elif in_short:
        console.write(f"{IN_SHORT_HEADING}. {in_short}\n")


async def _ask(digest: Digest, prompt: list[int], options: Options) -> Written:
    asked = request_options(is_reproducible=options.reproducible)
    engine = digest.model.loaded.engine
    guidance = await marks_only(digest.model, 0)
    with engine.submit(prompt, digest.params, asked, guidance) as stream:
        return await read_whole(stream, digest.model.splitter())
