"""The best answers of a chat model by beam search, with their thinking kept apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.chat.chat_model import ChatModel
from engine.beam_search import BeamAnswer, search
from engine.errors import UsageError
from engine.guided.answer import Guidance
from engine.metrics import Timings
from engine.request import RequestOptions
from engine.sampling.beam import BeamParams
from engine.sampling.controls import CONTROLS, Group
from engine.sampling_params import SamplingParams

DRAWING = frozenset(
    {"seed", "sampler_order"}
    | {
        control.name
        for control in CONTROLS
        if control.group in (Group.CHANCE, Group.FILTERS, Group.DRAWS)
    }
)
"""Controls without effect where nothing is drawn."""


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    content: str
    thinking: str
    beam: BeamAnswer


@dataclass(frozen=True, slots=True)
class FoundAnswers:
    """The best one first; the timings are of all together."""

    answers: tuple[FoundAnswer, ...]
    timings: Timings


def refuse_drawing(given: Iterable[str]) -> None:
    """Raises UsageError when a control was given that would be ignored."""
    ignored = sorted(DRAWING.intersection(given))
    if ignored:
        raise UsageError(
            f"Beam search draws nothing, so {', '.join(ignored)} would have no effect: leave it"
            " out, or n_beams."
        )


async def find_answers(
    model: ChatModel,
    prompt: Sequence[int],
    beams: BeamParams,
    params: SamplingParams,
    options: RequestOptions,
    guidance: Guidance | None,
) -> FoundAnswers:
    """Raises UsageError for a form that cannot be enforced as a whole, and what the search does."""
    if guidance is not None and guidance.grammar.unenforced:
        raise UsageError(
            "Beam search needs a form that can be enforced as a whole, and this one cannot"
            f" ({guidance.grammar.unenforced}): leave n_beams out."
        )
    engine, tokenizer = model.loaded.engine, model.loaded.tokenizer
    result = await search(engine, tokenizer, prompt, beams, params, options, guidance)
    return FoundAnswers(tuple(_divided(model, each) for each in result.answers), result.timings)


def _divided(model: ChatModel, beam: BeamAnswer) -> FoundAnswer:
    splitter = model.splitter()
    thinking, content = map("".join, zip(splitter.feed(beam.text), splitter.finish(), strict=True))
    return FoundAnswer(content, thinking, beam)
