"""What was said, made into turns that every chat template accepts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.chat.message import Message, Role
from engine.errors import UsageError
from engine.media import Media


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said. `token_ids` are the ids a model generated for it, or empty.

    `lead` stands before it for the model, such as passages of files, and `wish` after it. `media`
    are pictures and sounds that stand before
    what was said.
    """

    role: Role
    content: str
    thinking: str = ""
    token_ids: tuple[int, ...] = ()
    wish: str = ""
    lead: str = ""
    media: tuple[Media, ...] = ()

    @classmethod
    def of(cls, message: Message) -> "Turn":
        return cls(
            message.role,
            message.content,
            message.thinking,
            message.token_ids,
            media=tuple(each.media for each in message.attachments),
        )

    @property
    def is_empty(self) -> bool:
        return not (self.content.strip() or self.media)


def normalise(path: Iterable[Turn], system_prompt: str = "") -> tuple[Turn, ...]:
    """Turns in which at most one system turn leads and user and assistant alternate after it.

    What has neither text nor pictures (an answer that failed at once, say) is left out. An answer
    that was cut short stays. The last turn is the user's: a later answer is left out, and a path
    in which the user said nothing is a UsageError.
    """
    said = [_readable(turn) for turn in path if not turn.is_empty]
    instructions = [_whole(system_prompt)] if system_prompt.strip() else []
    while said and said[0].role is Role.SYSTEM:
        instructions.append(said.pop(0).content)

    turns: list[Turn] = []
    for turn in said:
        if turn.role is Role.SYSTEM:
            # Templates take instructions at the start only; moved there, they would change
            # what the model has already read.
            turn = replace(turn, role=Role.USER)
        if turns and turns[-1].role is turn.role:
            turns[-1] = _merge(turns[-1], turn)
        elif turns or turn.role is Role.USER:
            turns.append(turn)
    if turns and turns[-1].role is not Role.USER:
        turns.pop()
    if not turns:
        raise UsageError("There is no message to answer: write one first.")
    if instructions:
        turns.insert(0, Turn(Role.SYSTEM, "\n\n".join(instructions)))
    return tuple(turns)


def fold_system(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The same turns with the system prompt at the head of the user's first message."""
    if not turns or turns[0].role is not Role.SYSTEM:
        return tuple(turns)
    system, *rest = turns
    if not rest:
        return (replace(system, role=Role.USER),)
    return (_merge(replace(system, role=Role.USER), rest[0]), *rest[1:])


def _readable(turn: Turn) -> Turn:
    content = "\n\n".join(filter(None, (turn.lead, turn.content, turn.wish)))
    return replace(turn, content=_whole(content), thinking=_whole(turn.thinking), wish="", lead="")


def _merge(first: Turn, second: Turn) -> Turn:
    """One turn of two; no model generated it in one piece, so it has no ids."""
    thinking = "\n\n".join(text for text in (first.thinking, second.thinking) if text)
    content = "\n\n".join(text for text in (first.content, second.content) if text)
    return Turn(first.role, content, thinking, media=first.media + second.media)


def _whole(text: str) -> str:
    """Halves of surrogate pairs, which a pasted text may hold, are no text in UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")
