"""`inglenook models`: what is here and how it would do, and how models come and go."""

import asyncio
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from app.amounts import bytes_in_words, duration
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.models.beyond import too_large
from app.models.local import find_model, model_facts
from app.models.quantizations import explained
from app.models.starter import STARTER_NOTICE, starter_model
from app.services import Services
from app.visible import visible
from engine.errors import UsageError

if TYPE_CHECKING:
    # Only for the types: who asks for help should not wait for what models need.
    from app.models.fit import Fit
    from app.models.look import Look
    from app.models.way import Download

TOLD_EVERY_S = 2.0


async def models(services: Services, options: Options, console: Console) -> None:
    actions = {
        "list": show_list,
        "info": show_info,
        "search": search,
        "add": add,
        "download": download,
        "remove": remove,
        "use": use,
    }
    await actions[options.action](services, options, console)


async def show_list(services: Services, options: Options, console: Console) -> None:
    if options.available:
        await show_available(services, options, console)
        return
    library = services.library
    if not options.json:
        await library.measure_pace()
    found = await library.here()
    if options.json:
        rows: list[dict[str, Any]] = [
            {
                "name": each.model.name,
                "kind": "adapter" if each.look.is_adapter else "model",
                "path": str(each.model.path),
                "bytes": each.model.num_bytes,
                "starter": each.model.is_starter,
                "chosen": each.model.is_chosen,
                "source": each.model.source,
                "architecture": each.look.architecture,
                "base_model": each.look.base_model,
                "quantization": each.look.quantization,
                "problem": each.look.problem,
                "mmproj": "" if each.model.mmproj is None else str(each.model.mmproj),
                "fit": fit_as_json(each.fit),
            }
            for each in found
        ]
        write_json(console, {"models": rows})
        return
    for each in found:
        mark = "*" if each.model.is_chosen else " "
        verdict = each.look.problem
        if each.fit is not None:
            verdict = verdict_in_words(each.fit)
        elif not verdict:
            verdict = f"{adapter_in_words(each.look)}: `--lora {visible(each.model.name)}` uses it"
        if each.model.mmproj is not None:
            verdict += f". With {visible(each.model.mmproj.name)} it reads more than text"
        instead = library.instead(each)
        verdict += f". {instead}" if instead else ""
        console.write(
            f"{mark} {visible(each.model.name):40} {bytes_in_words(each.model.num_bytes):>7}"
            f"  {each.model.source}: {visible(str(each.model.path))}\n    {visible(verdict)}\n"
        )
    console.note(
        f"Put GGUF files into {services.paths.models} to see them here, or name one with"
        " `inglenook models add`; `inglenook models list --available` shows what can be downloaded."
    )


async def show_available(services: Services, options: Options, console: Console) -> None:
    from app.models.catalog import catalog

    if not options.json:
        await services.library.measure_pace()
    found = services.library.available(catalog())
    if options.json:
        rows = [
            {
                "name": each.model.name,
                "quantization": each.quantization,
                "bytes": each.num_bytes,
                "repo": each.model.repo,
                "licence": each.model.licence,
                "purpose": each.model.purpose,
                "instead": each.instead,
                "fit": fit_as_json(each.fit),
            }
            for each in found
        ]
        write_json(console, {"models": rows})
        return
    for each in found:
        if each.quantization == next(iter(each.model.sizes)):
            console.write(
                f"{each.model.name}: {each.model.title}, {each.model.licence}\n"
                f"    {each.model.purpose} ({each.model.languages})\n"
            )
        console.write(
            f"    {each.quantization:7} about {bytes_in_words(each.num_bytes):>6},"
            f" {verdict_in_words(each.fit)}{f'; {each.instead} fits' if each.instead else ''}\n"
        )
    for name in dict.fromkeys(each.quantization for each in found):
        if explained(name):
            console.note(f"{name}: {explained(name)}.")


async def show_info(services: Services, options: Options, console: Console) -> None:
    if options.text:
        path = find_model(services.paths, services.settings, options.text)
    else:
        path = services.model_path
    library = services.library
    look = await asyncio.to_thread(library.looks.at, path)
    if look.is_adapter and not look.problem:
        show_adapter(path, look, options, console)
        return
    is_in_use = not options.text or path == services.model_path
    config = services.engine_config if is_in_use else services.settings.engine_config(path)
    facts = await asyncio.to_thread(model_facts, config)
    fit = library.fit_of(path, look)
    if options.json:
        write_json(console, facts.as_json() | {"fit": fit_as_json(fit)})
        return
    form = explained(facts.quantization.partition(" ")[0])
    meaning = f": {form}" if form else ""
    console.write(
        f"{visible(facts.name)}\n"
        f"  file            {visible(facts.path)}\n"
        f"  architecture    {facts.architecture}\n"
        f"  parameters      {facts.parameters / 1e6:,.0f} million\n"
        f"  quantization    {facts.quantization}{meaning}\n"
        f"  context         {facts.context:,} tokens\n"
        f"  KV per token    {bytes_in_words(facts.kv_bytes_per_token)}\n"
        f"  memory          about {bytes_in_words(facts.memory_bytes)} with a context of"
        f" {config.num_cells(facts.context):,} tokens\n"
    )
    for adapter in config.adapters:
        size = bytes_in_words(adapter.num_bytes)
        console.write(
            f"  adapter         {visible(str(adapter.path))} at {adapter.scale:g}, {size}\n"
        )
    if facts.mmproj:
        told = facts.media_refusal or f"reads {' and '.join(facts.reads) or 'nothing more'}"
        console.write(f"  mmproj          {visible(facts.mmproj)}: {told}\n")
    if fit is not None:
        console.write(f"  here            {verdict_in_words(fit)}\n")
    if beyond := too_large(config.num_cells(facts.context), facts.context):
        console.note(beyond)
    if path == starter_model():
        console.note(STARTER_NOTICE)


def show_adapter(path: Path, look: "Look", options: Options, console: Console) -> None:
    if options.json:
        values = {
            "name": path.stem,
            "kind": "adapter",
            "path": str(path),
            "architecture": look.architecture,
            "base_model": look.base_model,
            "memory_bytes": look.num_bytes,
        }
        write_json(console, values)
        return
    console.write(
        f"{visible(path.stem)}\n"
        f"  file            {visible(str(path))}\n"
        f"  kind            {adapter_in_words(look)}\n"
        f"  memory          about {bytes_in_words(look.num_bytes)} besides its model\n"
    )


def adapter_in_words(look: "Look") -> str:
    made_for = f", made for {look.base_model}" if look.base_model else ""
    return f"a LoRA adapter for {look.architecture} models{made_for}"


async def search(services: Services, options: Options, console: Console) -> None:
    """Asks Hugging Face, and nobody else."""
    found = await services.library.search(options.text)
    if options.json:
        rows = [
            {
                "repo": each.repo,
                "downloads": each.num_downloads,
                "likes": each.num_likes,
                "licence": each.licence,
                "gated": each.is_gated,
            }
            for each in found
        ]
        write_json(console, {"models": rows})
        return
    for each in found:
        closed = ", for known people only" if each.is_gated else ""
        licence = each.licence or "no licence named"
        console.write(f"{each.repo:60} {each.num_downloads:>10,} downloads, {licence}{closed}\n")
    if not found:
        console.note(f"Nothing with GGUF files is called {options.text!r}: try a shorter word.")


async def add(services: Services, options: Options, console: Console) -> None:
    model = await asyncio.to_thread(
        services.library.add, Path(options.file), is_copied=options.copy
    )
    if options.json:
        write_json(console, {"name": model.name, "path": str(model.path)})
    elif services.library.looks.at(model.path).is_adapter:
        console.write(
            f"{visible(model.name)} can be used now: `inglenook run --lora {typed(model.name)}`.\n"
        )
    else:
        console.write(
            f"{visible(model.name)} can be used now: `inglenook models use {typed(model.name)}`.\n"
        )


async def download(services: Services, options: Options, console: Console) -> None:
    """Goes on until it is there; ended before, what has come is kept."""
    library = services.library
    name, _, wanted = options.text.partition(":")
    known = await library.download(name, options.quantization or wanted)
    told = Telling(console)
    try:
        path = await library.downloads.wait(known, told.hear)
    except asyncio.CancelledError:
        await library.downloads.pause(known)
        raise
    # Another model may have had the name of the file before.
    listed = library.find(str(path)).name
    if options.json:
        write_json(console, {"name": listed, "path": str(path), "bytes": path.stat().st_size})
    else:
        console.write(f"{listed} is here: `inglenook models use {typed(listed)}`.\n")


async def remove(services: Services, options: Options, console: Console) -> None:
    library = services.library
    model = library.find_one(options.text)
    question = library.check_removal(model)
    if not options.yes:
        raise UsageError(f"{question} Nothing was done: say so with --yes.")
    await services.model.remove(model)
    if options.json:
        write_json(console, {"removed": model.name, "path": str(model.path)})
    else:
        console.write(f"{visible(model.name)} is removed ({visible(str(model.path))}).\n")


async def use(services: Services, options: Options, console: Console) -> None:
    """From now on, and at every start."""
    model = services.library.take(options.text)
    notice = await services.model.use(model.path)
    if options.json:
        write_json(console, {"name": model.name, "path": str(model.path), "notice": notice})
        return
    console.write(f"{visible(model.name)} is the model that answers now.\n")
    look = await asyncio.to_thread(services.library.looks.at, model.path)
    fit = services.library.fit_of(model.path, look)
    beyond = too_large(fit.context_tokens, look.shape.trained_context) if fit and look.shape else ""
    for each in filter(None, (notice, beyond)):
        console.note(each)


def typed(name: str) -> str:
    """As one word of a command line."""
    name = visible(name)
    return f'"{name}"' if " " in name else name


class Telling:
    """Says how a download goes, every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told_at = monotonic()

    def hear(self, download: "Download") -> None:
        if monotonic() - self._told_at >= TOLD_EVERY_S:
            self._told_at = monotonic()
            self._console.note(progress_in_words(download))


def progress_in_words(download: "Download") -> str:
    have, total = bytes_in_words(download.num_bytes), bytes_in_words(download.total_bytes)
    share = (
        f"{100 * download.num_bytes / download.total_bytes:.0f} %, " if download.total_bytes else ""
    )
    words = f"{download.name}: {share}{have} of {total}"
    if download.bytes_per_s > 0:
        words += f", {bytes_in_words(download.bytes_per_s)}/s"
    left = download.seconds_left
    return words if left is None else f"{words}, {duration(left)} left"


def verdict_in_words(fit: "Fit") -> str:
    words = f"{fit.verdict}: {fit.why}"
    if fit.tokens_per_s is not None and fit.first_token_s is not None:
        words += (
            f"; about {fit.tokens_per_s:,.0f} tokens/s, and {fit.first_token_s:.1f} s until a"
            " question of 512 tokens is read"
        )
    return words


def fit_as_json(fit: "Fit | None") -> dict[str, Any] | None:
    if fit is None:
        return None
    return {
        "verdict": str(fit.verdict),
        "why": fit.why,
        "memory_bytes": fit.needed_bytes,
        "context": fit.context_tokens,
        "kv_type": fit.kv_type,
        "tokens_per_second": fit.tokens_per_s,
        "first_token_s": fit.first_token_s,
    }
