"""Passages of files in one prompt: how many a model has room for, measured with its own tokens."""

from typing import TYPE_CHECKING

from app.chat.chat_model import ChatModel
from app.chat.cited_text import cited_text
from app.chat.context import prompt_limit
from app.documents.grounds import Grounds
from engine.guided.answer import Guidance

if TYPE_CHECKING:
    from app.documents.answering import Answering

PASSAGES_SHARE = 0.5
"""Of what a prompt may have, so much may be passages; the rest is for what was said."""


async def fitted(
    answering: "Answering", grounds: Grounds, model: ChatModel, max_answer_tokens: int
) -> Grounds:
    """With as many of its passages as have room. Raises UsageError where not even one has."""
    limit = prompt_limit(model.loaded.engine.max_request_tokens, max_answer_tokens)
    tokenizer = model.loaded.tokenizer
    return await answering.fit(
        grounds, lambda text: len(tokenizer.encode(text)), int(PASSAGES_SHARE * limit)
    )


async def marks_only(model: ChatModel, grounds: Grounds) -> Guidance | None:
    """Lets an answer name these passages, and have no other brackets."""
    return await model.guidance(cited_text(len(grounds.quotations)), is_text=True)
