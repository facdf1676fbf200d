"""What the next answer of a conversation stands on: passages of files, as many as its model has
room for, measured with its own tokens."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.chat.chat_model import ChatModel
from app.chat.cited_text import cited_text
from app.chat.context import prompt_limit
from app.chat.draft import Draft
from app.chat.message import Message, Role
from app.documents.grounds import Grounds
from engine.guided.answer import Guidance

if TYPE_CHECKING:
    from app.documents.answering import Answering

PASSAGES_SHARE = 0.5
"""Of what a prompt may have, so much may be passages; the rest is for what was said."""


async def grounds_of(
    draft: Draft, shown: Sequence[Message], max_answer_tokens: int, answering: "Answering"
) -> Grounds | None:
    """For the question of a draft, in its conversation's documents; `shown` is the branch that was
    open. None: it asks nothing in words. Raises UsageError where nothing can be asked."""
    documents, question, path = draft.conversation.documents, draft.text, list(draft.path)
    if question is None:
        question = path.pop().content
    if documents is None or not question.strip():
        return None
    grounds = await answering.look(question, documents, _searched_before(path))
    if not grounds.is_found:
        return grounds
    grounds = await fitted(answering, grounds, draft.model, max_answer_tokens)
    old = shown[len(draft.path)].grounds if len(shown) > len(draft.path) else None
    if old is not None and old.quotations == grounds.quotations:
        # With the fence of before the prompt is the one that was read.
        grounds = replace(grounds, fence=old.fence, num_tokens=old.num_tokens)
    return grounds


def _searched_before(path: Sequence[Message]) -> str:
    """What was looked for with the question before, or that question; empty: there is none."""
    for message in reversed(path):
        if message.role is Role.ASSISTANT and message.grounds is not None:
            return message.grounds.searched
        if message.role is Role.USER:
            return message.content
    return ""


async def fitted(
    answering: "Answering", grounds: Grounds, model: ChatModel, max_answer_tokens: int
) -> Grounds:
    """With as many of its passages as have room. Raises UsageError where not even one has."""
    limit = prompt_limit(model.loaded.engine.max_request_tokens, max_answer_tokens)
    tokenizer = model.loaded.tokenizer
    return await answering.fit(
        grounds, lambda text: len(tokenizer.encode(text)), int(PASSAGES_SHARE * limit)
    )


async def marks_only(model: ChatModel, num_passages: int) -> Guidance | None:
    """Lets an answer name so many passages, numbered from 1, and have no other brackets, nor the
    fences of a prompt."""
    return await model.guidance(cited_text(num_passages), is_text=True)
