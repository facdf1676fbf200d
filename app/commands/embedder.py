"""`inglenook docs embedder`: which model finds in the files by meaning, and its choice."""

from typing import Any

from app.amounts import counted
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.documents.embedding.choice import NONE, EmbedderChoice
from app.documents.embedding.embeddings import EmbeddingStatus
from app.documents.embedding.trial import Trial
from app.documents.embedding.wording import cost_of_vectors, meaning_in_words
from app.documents.library import Library
from app.services import Services

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
            console.note(cost_of_vectors(trial))
        services.save_settings(services.settings.with_embedder(choice))
        library.embeddings.background.wake()
        await follow_vectors(library, console)
    _show(await library.embeddings.status(), options, console)


async def follow_vectors(library: Library, console: Console) -> None:
    """Until every passage that can have a vector has one."""
    library.embeddings.background.wake()
    await library.embeddings.background.rested(PROGRESS_S)
    while (status := await library.embeddings.status()).is_working:
        if status.progress.num_without and status.chosen is not None:
            console.note(
                f"{counted(status.progress.num_without, 'passage')} without a vector; all are found"
                " by their words."
            )
        await library.embeddings.background.rested(PROGRESS_S)


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
    console.write(f"{cost_of_vectors(trial)} Nothing has changed yet: add --yes to begin.\n")


def _show(status: EmbeddingStatus, options: Options, console: Console) -> None:
    if options.json:
        write_json(console, status_as_json(status))
        return
    console.write(f"{meaning_in_words(status)}\n")
    if status.problem:
        console.note(status.problem)


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
