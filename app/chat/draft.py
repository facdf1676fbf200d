"""A conversation that is to be answered, and the turns of it that are sent."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.chat.answer_form import AnswerForm
from app.chat.chat_model import ChatModel
from app.chat.context import Piece, Pieces, scaled
from app.chat.example import Example
from app.chat.message import Conversation, Message, Role
from app.chat.turns import Turn
from app.chat.wishes import Wishes
from app.documents.grounds import Grounds
from app.documents.quoting import quoted
from engine.errors import PromptTooLong
from engine.media import Media

NEWEST = "newest"
"""The id of a message that is not stored yet."""
SUMMARY_LEAD = "What was said before, in short:\n"
# Marks and line ends that a template puts around each message, about.
MARKS_AROUND_MESSAGE = 4


@dataclass(frozen=True, slots=True)
class Draft:
    """A conversation that is to be answered: `path` from its root, and what is said after it."""

    model: ChatModel
    conversation: Conversation
    path: Sequence[Message]
    text: str | None = None
    media: tuple[Media, ...] = ()
    """What is shown with the text."""
    grounds: Grounds | None = None
    """What the answer is to stand on; its passages stand before what the user said last, and there
    only, so that the turns before it are what they would be without them. A document that is read
    whole is part of the conversation's system prompt."""

    @property
    def question(self) -> str:
        """What the user said last."""
        if self.text is not None:
            return self.text
        return next((one.content for one in reversed(self.path) if one.role is Role.USER), "")

    def lead(self, summary: str) -> list[Turn]:
        """What stands before the first turn that is sent, beside the system prompt. The examples
        come before a summary, which is another one from time to time: they need not be read again.
        """
        lead = [*map(Turn.of, self._pinned), *turns_of(self.conversation.examples)]
        return [*lead, Turn(Role.SYSTEM, SUMMARY_LEAD + summary)] if summary else lead

    async def encode(self, turns: Sequence[Turn]) -> list[int]:
        conversation = self.conversation
        return await self.model.prompt(turns, conversation.system_prompt, conversation.created_at)

    def turns(self, first_id: str = "", summary: str = "") -> tuple[Turn, ...]:
        """What is sent from the message `first_id` on; everything if that is not here."""
        return (*self.lead(summary), *self._asked(self._sent_from(first_id)))

    async def token_ids(self, first_id: str = "", summary: str = "") -> list[int]:
        """The prompt that these turns make."""
        return await self.encode(self.turns(first_id, summary))

    async def pieces(self, num_tokens: int, first_id: str) -> Pieces:
        """Everything in pieces, if the prompt from `first_id` has `num_tokens`."""
        lead = [turn.content for turn in turns_of(self.conversation.examples)]
        texts = ["" if self.text is None else self.text, self.conversation.system_prompt, *lead]
        sizes, (num_new, *fixed) = await asyncio.to_thread(
            _sizes_of, self.model, [*self._pinned, *self._said], texts
        )
        num_new += await asyncio.to_thread(self.model.num_media_tokens, self.media)
        bounds = [place for place, one in enumerate(self._said) if one.role is Role.USER]
        pinned = len(self._pinned)
        groups = [
            (self._said[begin].message_id, sum(sizes[pinned + begin : pinned + end]))
            for begin, end in zip(bounds, [*bounds[1:], len(self._said)], strict=True)
        ]
        if self.text is not None:
            groups.append((NEWEST, num_new + MARKS_AROUND_MESSAGE))
        if self.grounds is not None and self.grounds.whole is None and groups:
            last_id, size = groups[-1]
            groups[-1] = last_id, size + self.grounds.num_tokens
        num_fixed = sum(fixed) + MARKS_AROUND_MESSAGE * len(lead) + sum(sizes[:pinned])
        first = next((n for n, (each, _) in enumerate(groups) if each == first_id), 0)
        # The part that was sent is known exactly, the rest by the same measure.
        sent = sum(size for _, size in groups[first:])
        whole = sum(size for _, size in groups)
        total = round((num_tokens - num_fixed) * whole / sent) if sent else 0
        exact = scaled([size for _, size in groups], max(total, 0))
        return Pieces(
            [Piece(each, n) for (each, _), n in zip(groups, exact, strict=True)], num_fixed
        )

    def is_newest_only(self, first_id: str) -> bool:
        """Nothing more could be left out."""
        if self.text is not None:
            return first_id == NEWEST or not self._said
        return sum(one.role is Role.USER for one in self._sent_from(first_id)) <= 1

    def between(self, pieces: Sequence[Piece]) -> list[tuple[Message, ...]]:
        """The messages of these pieces, piece by piece."""
        starts = {piece.first_id for piece in pieces}
        groups: list[list[Message]] = []
        is_in = False
        for message in self._said:
            if message.role is Role.USER:
                is_in = message.message_id in starts
                if is_in:
                    groups.append([])
            if is_in:
                groups[-1].append(message)
        return [tuple(group) for group in groups]

    def check(self, token_ids: Sequence[int]) -> None:
        """Raises PromptTooLong for what the engine would refuse."""
        limit = self.model.loaded.engine.max_request_tokens
        if len(token_ids) >= limit:
            raise PromptTooLong(len(token_ids), limit)

    def _asked(self, messages: Sequence[Message]) -> Iterator[Turn]:
        """These messages and the newest one; those of the user with the form of their answers."""
        wishes = Wishes()
        for message, following in itertools.zip_longest(messages, messages[1:]):
            turn = Turn.of(message)
            if message.role is Role.USER:
                form = self._form_of(following)
                turn = replace(turn, wish=wishes.next(form), lead=self._lead_of(message))
            yield turn
        if self.text is not None:
            wish = wishes.next(self.conversation.answer_form)
            yield Turn(Role.USER, self.text, wish=wish, media=self.media, lead=self._lead)

    def _form_of(self, answer: Message | None) -> AnswerForm | None:
        """None: the answer is yet to come."""
        if answer is None:
            return self.conversation.answer_form
        return None if answer.made_in is None else answer.made_in.form

    def _lead_of(self, message: Message) -> str:
        is_last = self.text is None and message.message_id == self.newest_id
        return self._lead if is_last else ""

    @property
    def _lead(self) -> str:
        grounds = self.grounds
        if grounds is None or not grounds.is_found or grounds.whole is not None:
            return ""
        has_marks = self.conversation.answer_form is None
        return quoted(grounds.quotations, grounds.fence, with_marks=has_marks)

    @property
    def newest_id(self) -> str:
        if self.text is not None:
            return NEWEST
        return next(one.message_id for one in reversed(self.path) if one.role is Role.USER)

    @property
    def _pinned(self) -> list[Message]:
        """Instructions that lead the conversation; they stay."""
        return [one for one in self.path[: self._num_leading] if one.role is Role.SYSTEM]

    @property
    def _said(self) -> Sequence[Message]:
        return self.path[self._num_leading :]

    @property
    def _num_leading(self) -> int:
        users = (place for place, one in enumerate(self.path) if one.role is Role.USER)
        return next(users, len(self.path))

    def _sent_from(self, first_id: str) -> Sequence[Message]:
        if first_id == NEWEST:
            return ()
        places = (n for n, one in enumerate(self._said) if one.message_id == first_id)
        return self._said[next(places, 0) :]


def turns_of(examples: Sequence[Example]) -> list[Turn]:
    """As the model is shown them."""
    turns: list[Turn] = []
    for example in examples:
        turns += Turn(Role.USER, example.user), Turn(Role.ASSISTANT, example.assistant)
    return turns


def _sizes_of(
    model: ChatModel, messages: Sequence[Message], texts: Sequence[str]
) -> tuple[list[int], list[int]]:
    sizes = [message_size(model, one) + MARKS_AROUND_MESSAGE for one in messages]
    return sizes, [len(model.loaded.tokenizer.encode(text)) for text in texts]


def message_size(model: ChatModel, message: Message) -> int:
    """Its tokens, without what a template puts around it. Old thinking is not sent again."""
    if message.token_ids and not message.thinking:
        return len(message.token_ids)
    shown = model.num_media_tokens([each.media for each in message.attachments])
    return shown + len(model.loaded.tokenizer.encode(message.content))
