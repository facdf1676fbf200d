"""`inglenook docs embedder`: which model finds in the files by meaning, and its choice."""

from pathlib import Path
from typing import Any

from app.amounts import counted
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.documents.embedding.choice import NAMES, NONE, EmbedderChoice
from app.documents.embedding.embeddings import EmbeddingStatus
from app.documents.embedding.trial import Trial
from app.documents.library import Library
from app.services import Services
from app.visible import visible

PROGRESS_S = 1.0
ASKED_FROM_S = 60.0
"""What takes longer is begun only with --yes."""


async def embedder(services: Services, options: Options, console: Console) -> None:
    """Shows what is used, or chooses another one and stays until its vectors are made."""
    library = services.documents
    if options.text:
        choice = EmbedderChoice(
            options.text, options.query_prefix, options.passage_prefix, options.languages
        )
        if choice.model != NONE:
            trial = await library.embeddings.try_out(choice)
            if trial.seconds > ASKED_FROM_S and not options.yes:
                _ask(trial, options, console)
                return
            console.note(_cost(trial))
        services.save_settings(services.settings.with_embedder(choice))
        library.embeddings.wake()
        await follow_vectors(library, console)
    _show(await library.embeddings.status(), options, console)


async def follow_vectors(library: Library, console: Console) -> None:
    """Until every passage that can have a vector has one."""
    library.embeddings.wake()
    await library.embeddings.rested(PROGRESS_S)
    while (status := await library.embeddings.status()).is_working:
        if status.progress.num_without and status.chosen is not None:
            console.note(
                f"{counted(status.progress.num_without, 'passage')} without a vector; all are found"
                " by their words."
            )
        await library.embeddings.rested(PROGRESS_S)


def _ask(trial: Trial, options: Options, console: Console) -> None:
    if options.json:
        write_json(
            console,
            {
                "chosen": False,
                "name": trial.embedder.name,
                "passages": trial.num_passages,
                "seconds": round(trial.seconds),
            },
        )
        return
    console.write(f"{_cost(trial)} Nothing has changed yet: add --yes to begin.\n")


def _cost(trial: Trial) -> str:
    if not trial.num_passages:
        return f"{visible(trial.embedder.name)}: no vector has to be made."
    minutes = max(1, round(trial.seconds / 60))
    about = f"{counted(minutes, 'minute')}" if trial.seconds > 90 else f"{trial.seconds:.0f} s"
    return (
        f"{visible(trial.embedder.name)}: vectors of {counted(trial.num_passages, 'passage')} have"
        f" to be made, about {about}. Until then the search is as it was."
    )


def _show(status: EmbeddingStatus, options: Options, console: Console) -> None:
    if options.json:
        write_json(console, status_as_json(status))
        return
    console.write(f"{vectors_in_words(status)}\n")
    if status.problem:
        console.note(status.problem)


def vectors_in_words(status: EmbeddingStatus) -> str:
    """In which way it is searched, and how far that has come."""
    if status.choice.model == NONE:
        return "Words alone are searched: no embedding model is used."
    name = _name(status)
    if status.chosen is None:
        return f"Words alone are searched now: {name} is not used yet."
    found = status.progress
    made = found.num_passages - found.num_without
    known = ", ".join(status.chosen.languages)
    passages = counted(found.num_passages, "passage")
    said = f"By words, and by meaning with {name}: {made:,} of {passages} have a vector."
    if known and found.num_others:
        said += f" It knows {known}: {counted(found.num_others, 'other')} by words alone."
    return said


def status_as_json(status: EmbeddingStatus) -> dict[str, Any]:
    chosen = status.chosen
    return {
        "embedder": status.choice.model,
        "name": "" if chosen is None else chosen.name,
        "id": "" if chosen is None else chosen.key,
        "dimensions": 0 if chosen is None else chosen.width,
        "pooling": "" if chosen is None else chosen.pooling,
        "query_prefix": "" if chosen is None else chosen.prefixes.query,
        "passage_prefix": "" if chosen is None else chosen.prefixes.passage,
        "languages": [] if chosen is None else list(chosen.languages) or ["all"],
        "searched": "" if status.searched is None else status.searched.name,
        "passages": status.progress.num_passages,
        "without": status.progress.num_without,
        "other_languages": status.progress.num_others,
        "working": status.is_working,
        "problem": status.problem,
    }


def _name(status: EmbeddingStatus) -> str:
    model = status.choice.model
    name = model if model in NAMES else Path(model).name
    own = "" if status.chosen is None else status.chosen.name
    return visible(f"{name} ({own})" if own and own != name else name)
