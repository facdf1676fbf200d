"""A summary of a document section by section, however long it is: each section is read alone.

passages -> sections that fit -> one request each -> "**Pages 1 to 3** ..." as it comes
                              `-> the summaries together -> "**In short** ..."
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.amounts import duration
from app.chat.chat_model import ChatModel
from app.chat.context import prompt_limit
from app.chat.message import Role
from app.chat.turns import Turn
from app.documents.quotation import Quotation
from app.documents.quoting import quoted_section
from app.documents.whole_text import WholeText
from app.visible import visible
from engine.errors import UsageError
from engine.sampling_params import SamplingParams

MOST_SECTION_TOKENS = 1_500
ENOUGH_OF_SECTION = 0.5
"""So full a section ends where another heading of the first rank begins."""
LONGEST_SUMMARY = 160
"""Tokens of the summary of one section."""
ROOM_AROUND = 200
"""Tokens of the wish, of the fences, and of what a template adds."""
WISH = (
    "Sum up this section in at most three sentences, in its own language. Keep names, numbers and"
    " dates. Write the summary only."
)
IN_SHORT = (
    "These are summaries of all sections of the file {name}, in their order:\n\n{summaries}\n\nSay"
    " in at most three sentences what the file is about and what matters most in it, in its own"
    " language. Write these sentences only."
)
NO_ROOM = (
    "This model's context has no room for a section of a file: choose a larger context in the"
    " settings."
)
IN_SHORT_HEADING = "In short"


@dataclass(frozen=True, slots=True)
class Section:
    """Neighbouring parts of a document."""

    parts: tuple[Quotation, ...]

    @property
    def heading(self) -> str:
        """Where it stands, and what all of it stands under."""
        first, last = self.parts[0].page, self.parts[-1].page_to
        pages = f"Page {first}" if first == last else f"Pages {first} to {last}"
        top = {each.heading[:1] for each in self.parts}
        (under,) = top if len(top) == 1 else ((),)
        return f"{pages}, {visible(under[0])}" if under else pages


@dataclass(frozen=True, slots=True)
class Digest:
    """What is to be summed up, and how its requests are made; `clock` and `system_prompt` are the
    conversation's."""

    model: ChatModel
    read: WholeText
    sections: tuple[Section, ...]
    params: SamplingParams
    system_prompt: str
    clock: float

    async def prompt_of(self, section: Section) -> list[int]:
        lead = quoted_section(section.parts, self.read.whole.fence)
        return await self._prompt(Turn(Role.USER, WISH, lead=lead))

    async def prompt_in_short(self, summaries: Sequence[str]) -> list[int] | None:
        """None: it is not worth it, or they are too long to be read at once."""
        if len(summaries) < 2:
            return None
        name = visible(self.read.whole.name)
        wish = IN_SHORT.format(name=name, summaries="\n\n".join(summaries))
        prompt = await self._prompt(Turn(Role.USER, wish))
        limit = self.model.loaded.engine.max_request_tokens
        return prompt if len(prompt) <= prompt_limit(limit, LONGEST_SUMMARY) else None

    async def _prompt(self, turn: Turn) -> list[int]:
        prompt = await self.model.prompt([turn], self.system_prompt, self.clock)
        return prompt + self.model.skipped_thinking(is_thinker=False)


async def digest_of(
    model: ChatModel, read: WholeText, params: SamplingParams, system_prompt: str, clock: float
) -> Digest:
    """Raises UsageError where a section does not even fit alone."""
    tokenizer = model.loaded.tokenizer
    most = prompt_limit(model.loaded.engine.max_request_tokens, LONGEST_SUMMARY) - ROOM_AROUND
    most -= len(tokenizer.encode(system_prompt))
    if most < ROOM_AROUND:
        raise UsageError(NO_ROOM)
    sections = await asyncio.to_thread(
        sections_of,
        read.parts,
        lambda text: len(tokenizer.encode(text)),
        min(most, MOST_SECTION_TOKENS),
    )
    shorter = replace(params, max_tokens=min(params.max_tokens, LONGEST_SUMMARY), stop=())
    return Digest(model, read, tuple(sections), shorter, system_prompt, clock)


def wish_of(read: WholeText) -> str:
    """What the user is taken to have said."""
    return f"Sum up {visible(read.whole.name)}, section by section."


def sections_of(
    parts: Sequence[Quotation], num_tokens: Callable[[str], int], most: int
) -> list[Section]:
    """As many parts as fit into `most` tokens, but rather to a heading than over it. A part that
    does not fit alone is a section by itself, as far as it fits."""
    sections: list[Section] = []
    held: list[Quotation] = []
    size = 0
    for part in parts:
        count = num_tokens(part.text)
        if count > most:
            part, count = _shorter(part, num_tokens, most), most
        is_new = bool(held) and held[-1].heading[:1] != part.heading[:1]
        if held and (size + count > most or (is_new and size >= ENOUGH_OF_SECTION * most)):
            sections.append(Section(tuple(held)))
            held, size = [], 0
        held.append(part)
        size += count
    return [*sections, Section(tuple(held))] if held else sections


def _shorter(part: Quotation, num_tokens: Callable[[str], int], most: int) -> Quotation:
    length = len(part.text)
    while length and num_tokens(part.text[:length]) > most:
        length = length * 3 // 4
    return replace(part, text=part.text[:length])


def progress(digest: Digest, number: int, seconds: float) -> str:
    """What goes on: the section with this `number`, from 1, after so many seconds."""
    num, name = len(digest.sections), visible(digest.read.whole.name)
    left = ""
    if number > 1:
        left = f" About {duration(seconds / (number - 1) * (num - number + 1))} left."
    return f"Summing up {name}: section {number} of {num}.{left}"
