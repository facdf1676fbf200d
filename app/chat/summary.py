"""The model's own summary of turns that are no longer sent."""

from collections.abc import Callable

from app.chat.prompts import Gap
from app.chat.thinking import ThinkingSplitter
from engine.async_engine import OutputStream
from engine.errors import EngineError
from engine.request import FinishReason
from engine.sampling_params import SamplingParams

WISH = (
    "Before we go on: sum up our conversation so far in at most {words} words, as notes for"
    " yourself. Keep names, numbers, decisions and open questions. Write the notes only."
)
WORDS_PER_TOKEN = 0.6

Submit = Callable[[list[int], SamplingParams], OutputStream]


async def summarise(gap: Gap, submit: Submit, on_progress: Callable[[str], None]) -> str | None:
    """Fill a gap, part by part. None: it was stopped.

    `on_progress` gets a sentence now and then. Raises EngineError when the model says nothing.
    """
    summary = gap.summary
    wish = WISH.format(words=int(gap.max_tokens * WORDS_PER_TOKEN))
    params = SamplingParams(temperature=0.0, max_tokens=gap.max_tokens)
    on_progress(_progress(gap, 0))
    for part in gap.parts:
        prompt = await gap.prompt_for(part, summary, wish)
        splitter = ThinkingSplitter()
        said: list[str] = []
        with submit(prompt, params) as stream:
            async for output in stream:
                said.append(splitter.feed(output.text)[1])
                on_progress(_progress(gap, len("".join(said).split())))
                if output.finish_reason is FinishReason.ABORT:
                    return None
        said.append(splitter.finish()[1])
        summary = "".join(said).strip()
        if not summary:
            raise EngineError(
                "The model wrote no summary of the oldest turns, so nothing was sent: ask again,"
                " or choose in the settings to leave them out."
            )
    return summary


def _progress(gap: Gap, num_words: int) -> str:
    turns = f"{gap.num_turns} oldest turns" if gap.num_turns > 1 else "oldest turn"
    words = f" {num_words:,} words" if num_words else ""
    return f"Summing up the {turns}…{words}"
