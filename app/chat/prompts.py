"""The prompt for the next answer: of the whole conversation, or of what of it is still sent.

What was left out is a fact of each answer (`Message.seen`), so that it follows the branch: the next
prompt begins where that of the newest answer above it began.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.chat.context import (
    FULL,
    ROOMY,
    DoesNotFit,
    Outlook,
    Piece,
    Pieces,
    Plan,
    larger_context,
    prompt_limit,
)
from app.chat.draft import Draft
from app.chat.message import Message, Overflow, Role, Seen
from app.chat.turns import Turn

LONGEST_SUMMARY = 400
ROOM_FOR_WISH = 200


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: the ids of `turns`. With a `gap` it is not known yet: a summary comes first.

    `seen.first_id` may be `NEWEST`.
    """

    turns: tuple[Turn, ...]
    token_ids: list[int]
    seen: Seen
    gap: "Gap | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What a summary must be made of, and the draft that it completes.

    `parts` are pieces of the branch that can be read at once; `summary` stands for what was left
    out before them. The new one has at most `max_tokens`.
    """

    draft: Draft
    parts: tuple[tuple[Message, ...], ...]
    summary: str
    max_tokens: int
    first_id: str
    num_turns: int

    async def prompt_for(self, part: Iterable[Message], summary: str, wish: str) -> list[int]:
        """Asks the model for a summary. It begins as the conversation did, which is held."""
        draft = self.draft
        turns = [*draft.lead(summary), *map(Turn.of, part), Turn(Role.USER, wish)]
        is_thinker = any(message.thinking for message in draft.path)
        return await draft.encode(turns) + draft.model.skipped_thinking(is_thinker)

    async def closed(self, summary: str) -> Prompt:
        """The prompt with the summary in it. Raises PromptTooLong."""
        token_ids = await self.draft.token_ids(self.first_id, summary)
        self.draft.check(token_ids)
        turns = self.draft.turns(self.first_id, summary)
        return Prompt(turns, token_ids, seen_of(token_ids, self.first_id, summary))


async def make_prompt(draft: Draft, shown: Sequence[Message], max_answer_tokens: int) -> Prompt:
    """What is sent for the next answer, by the choice of the conversation.

    `shown` is the branch that was open: it may end in the answer that is written anew. Raises
    DoesNotFit when there is a choice to make, and PromptTooLong when there is none.
    """
    limit = prompt_limit(draft.model.loaded.engine.max_request_tokens, max_answer_tokens)
    held = left_out_before(shown)
    token_ids = await draft.token_ids(held.first_id, held.summary)
    if held.first_id and len(whole := await draft.token_ids()) <= ROOMY * limit:
        # A larger context, or a shorter branch: nothing needs to be left out any more.
        held, token_ids = Seen(), whole
    choice = draft.conversation.overflow
    allowed = limit if choice is Overflow.ASK else FULL * limit
    if len(token_ids) <= allowed or draft.is_newest_only(held.first_id):
        draft.check(token_ids)
        # Stored once on each branch; an answer that is written anew stands on none that has it.
        is_known = left_out_before(draft.path).summary == held.summary
        summary = "" if is_known else held.summary
        turns = draft.turns(held.first_id, held.summary)
        return Prompt(turns, token_ids, seen_of(token_ids, held.first_id, summary))
    draft.check(await draft.token_ids(draft.newest_id))
    pieces = await draft.pieces(len(token_ids), held.first_id)
    match choice:
        case Overflow.ASK:
            raise DoesNotFit(_outlook(draft, pieces, held.first_id, limit))
        case Overflow.DROP:
            return await _without_oldest(draft, pieces, held.first_id, limit)
        case Overflow.SUMMARISE:
            return _with_gap(draft, pieces, held, limit)


def left_out_before(path: Sequence[Message]) -> Seen:
    """Where the prompt of the newest answer began, with the summary that it had."""
    last = next((one.seen for one in reversed(path) if one.seen.digest), Seen())
    if not any(one.message_id == last.first_id for one in path):
        return Seen()
    same = (one.seen for one in reversed(path) if one.seen.first_id == last.first_id)
    summary = next((seen.summary for seen in same if seen.summary), "")
    return replace(last, summary=summary)


def seen_of(token_ids: Sequence[int], first_id: str, summary: str) -> Seen:
    return Seen(
        num_tokens=len(token_ids),
        digest=prompt_digest(token_ids),
        first_id=first_id,
        summary=summary,
    )


def prompt_digest(token_ids: Sequence[int]) -> str:
    """Tells one prompt from every other one."""
    return hashlib.sha256(np.asarray(token_ids, dtype="<i4").tobytes()).hexdigest()[:32]


async def _without_oldest(draft: Draft, pieces: Pieces, first_id: str, limit: int) -> Prompt:
    plan = pieces.within(limit, first_id)
    token_ids = await draft.token_ids(plan.first_id)
    while len(token_ids) > limit and not draft.is_newest_only(plan.first_id):
        # The sizes of single turns are near, not exact.
        plan = _next_after(pieces, plan)
        token_ids = await draft.token_ids(plan.first_id)
    draft.check(token_ids)
    turns = draft.turns(plan.first_id)
    return Prompt(turns, token_ids, seen_of(token_ids, plan.first_id, ""))


def _next_after(pieces: Pieces, plan: Plan) -> Plan:
    ids = [piece.first_id for piece in pieces.pieces if not piece.is_pinned]
    place = ids.index(plan.first_id) if plan.first_id else 0
    return pieces.sent_from(ids[place + 1])


def _with_gap(draft: Draft, pieces: Pieces, held: Seen, limit: int) -> Prompt:
    max_tokens = _summary_tokens(limit)
    left_out, first_id = _summed_up(pieces, held.first_id, limit)
    # The request for a summary also holds the wish for it, itself, and the summary before it.
    room = draft.model.loaded.engine.max_request_tokens - pieces.num_fixed - ROOM_FOR_WISH
    room -= max_tokens * (2 if held.summary else 1)
    if sum(piece.num_tokens for piece in left_out) > room and not held.summary:
        room -= max_tokens
    gap = Gap(
        draft=draft,
        parts=tuple(_parts(draft, left_out, room)),
        summary=held.summary,
        max_tokens=max_tokens,
        first_id=first_id,
        num_turns=len(left_out),
    )
    return Prompt((), [], Seen(first_id=first_id), gap)


def _summary_tokens(limit: int) -> int:
    return min(LONGEST_SUMMARY, limit // 6)


def _summed_up(pieces: Pieces, first_id: str, limit: int) -> tuple[Sequence[Piece], str]:
    """What a summary stands for, and the first message that is still sent beside it."""
    roomier = replace(pieces, num_fixed=pieces.num_fixed + _summary_tokens(limit))
    plan = roomier.within(limit, first_id)
    return pieces.left_out(plan, first_id), plan.first_id


def _parts(draft: Draft, pieces: Sequence[Piece], room: int) -> Iterable[tuple[Message, ...]]:
    """What can be read at once: mostly everything, as it was read before."""
    part: list[Message] = []
    size = 0
    for piece, messages in zip(pieces, draft.between(pieces), strict=True):
        if part and size + piece.num_tokens > room:
            yield tuple(part)
            part, size = [], 0
        part += messages
        size += piece.num_tokens
    yield tuple(part)


def _outlook(draft: Draft, pieces: Pieces, first_id: str, limit: int) -> Outlook:
    now, plan = pieces.sent_from(first_id), pieces.within(limit, first_id)
    loaded = draft.model.loaded
    whole = pieces.sent_from("").num_tokens
    # With the same share of it kept for an answer.
    needed = whole * loaded.engine.max_request_tokens / limit
    larger = larger_context(loaded.engine.max_request_tokens, loaded.info.trained_context, needed)
    return Outlook(
        num_tokens=now.num_tokens,
        limit=limit,
        max_request_tokens=loaded.engine.max_request_tokens,
        num_left_out=plan.num_left_out - now.num_left_out,
        num_tokens_left_out=now.num_tokens - plan.num_tokens,
        num_summed_up=len(_summed_up(pieces, first_id, limit)[0]),
        larger=larger,
    )
