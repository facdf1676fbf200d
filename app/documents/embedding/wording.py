"""What a person is told of searching by meaning."""

from pathlib import Path

from app.amounts import counted
from app.documents.embedding.choice import NAMES, NONE
from app.documents.embedding.embeddings import EmbeddingStatus
from app.documents.embedding.trial import Trial
from app.visible import visible


def cost_of_vectors(trial: Trial) -> str:
    if not trial.num_passages:
        return f"{visible(trial.embedder.name)}: no vector has to be made."
    minutes = max(1, round(trial.seconds / 60))
    about = f"{counted(minutes, 'minute')}" if trial.seconds > 90 else f"{trial.seconds:.0f} s"
    return (
        f"{visible(trial.embedder.name)}: vectors of {counted(trial.num_passages, 'passage')} have"
        f" to be made, about {about}. Until then the search is as it was."
    )


def meaning_in_words(status: EmbeddingStatus) -> str:
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


def _name(status: EmbeddingStatus) -> str:
    model = status.choice.model
    name = model if model in NAMES else Path(model).name
    own = "" if status.chosen is None else status.chosen.name
    return visible(f"{name} ({own})" if own and own != name else name)
