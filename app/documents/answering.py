"""Answering from a person's files: what is found for a question, and what an answer is worth.

question -> library -> Grounds: passages that fit the model, or that nothing was found
answer   -> library -> Grounds with citations: kept, corrected, added, dropped
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from math import inf

from app.documents.follow_up import leans, together
from app.documents.grounds import Grounds, still_read
from app.documents.library import Library, Looked
from app.documents.quotation import Quotation, name_of
from app.documents.quoting import MOST_TOKENS, CountTokens, fence_for, fitting, quoted
from app.documents.scope import Scope
from app.documents.search import Hit
from app.documents.whereabouts import Whereabouts, whereabouts
from app.documents.whole_text import WholeText
from app.visible import visible
from engine.errors import UsageError

NUM_NEAREST = 3
"""Of what was not enough, so many are named."""
NOTHING_TO_ASK = (
    "There is no text in the documents that were chosen: choose others, add some, or see in the"
    " list of your files what became of these."
)
NOTHING_YET = "There is no text in the documents that were chosen yet."
NO_ROOM = (
    "This model's context has no room for a passage of a file beside an answer: choose a larger"
    " context in the settings, or allow shorter answers."
)


class Answering:
    """Owned by the event loop. `library` opens the library when it is asked for the first time."""

    def __init__(self, library: Callable[[], Library]) -> None:
        self._library = library

    async def whereabouts(self, scope: Scope, since: float = inf) -> Whereabouts:
        """Where the files are now that are asked; moves that were noticed after `since`, in
        seconds since the epoch, are named."""
        return await self._library().ask(lambda tables: whereabouts(tables, scope, since))

    async def look(self, question: str, scope: Scope, earlier: str = "") -> Grounds:
        """What an answer could stand on, before it is known what fits. `earlier` is what was
        searched for before, for a question that leans on it.

        Raises UsageError where nothing can be asked.
        """
        library = self._library()
        searched, looked = question, await library.look_for(question, scope)
        if (
            not looked.found.is_enough
            and earlier
            and leans(question, is_known=looked.found.is_known)
        ):
            both = together(earlier, question)
            with_earlier = await library.look_for(both, scope)
            if with_earlier.found.is_enough:
                searched, looked = both, with_earlier
        if not looked.num_documents and looked.num_waiting:
            raise UsageError(f"{NOTHING_YET} {still_read(looked.num_waiting)}")
        if not looked.num_documents:
            raise UsageError(_nothing_to_ask(scope))
        quotations = quotations_of(looked)
        return Grounds(
            scope=scope,
            searched=searched,
            num_documents=looked.num_documents,
            num_waiting=looked.num_waiting,
            is_found=looked.found.is_enough,
            quotations=quotations if looked.found.is_enough else quotations[:NUM_NEAREST],
        )

    async def fit(self, grounds: Grounds, num_tokens: CountTokens, most_tokens: int) -> Grounds:
        """With the best of the passages, as many as take no more than so many tokens of the model
        whose `num_tokens` this is. Raises UsageError where not even a part of one does."""
        most = min(most_tokens, MOST_TOKENS)
        return await asyncio.to_thread(_fit, grounds, num_tokens, most)

    async def whole(self, scope: Scope) -> WholeText | None:
        """The one document that is asked, all of it, to be looked at. None: it is not one. Raises
        UsageError for a collection that is not there."""
        return await self._library().whole(scope)

    async def mark_whole(self, read: WholeText) -> WholeText | None:
        """What was looked at, as a model reads it now. None: it has gone."""
        return await self._library().mark_whole(read)

    async def num_documents(self, scope: Scope) -> int:
        """How many with text are asked."""
        return await self._library().num_documents(scope)

    async def whole_with(self, sha256: str) -> WholeText | None:
        """The document with these bytes. None: it has gone, or changed."""
        return await self._library().whole_with(sha256)

    async def check(self, content: str, grounds: Grounds, read: WholeText | None = None) -> Grounds:
        """With the citations of an answer that was made from these, or from what was `read`."""
        given = grounds.quotations if read is None else read.parts
        checked = await self._library().check(content, grounds.searched, given)
        found = replace(grounds, citations=checked.citations, unfound=checked.unfound)
        return found if read is None else found.with_parts(read.parts)


def _nothing_to_ask(scope: Scope) -> str:
    """One file that was chosen may have another name by now."""
    if scope.collections or len(scope.paths) != 1:
        return NOTHING_TO_ASK
    name = visible(name_of(scope.paths))
    return f"{name} has no text, or was renamed, moved or deleted. {NOTHING_TO_ASK}"


def _fit(grounds: Grounds, num_tokens: CountTokens, most: int) -> Grounds:
    fence = fence_for(grounds.quotations)
    chosen = fitting(grounds.quotations, fence, num_tokens, most)
    if not chosen:
        raise UsageError(NO_ROOM)
    num_quoted = num_tokens(quoted(chosen, fence))
    return replace(grounds, quotations=chosen, fence=fence, num_tokens=num_quoted)


def quotations_of(looked: Looked) -> tuple[Quotation, ...]:
    """Best first."""
    return tuple(map(_quotation, looked.found.hits))


def _quotation(hit: Hit) -> Quotation:
    return Quotation(
        sha256=hit.sha256,
        paths=hit.paths,
        title=hit.title,
        page=hit.page,
        page_to=hit.page_to,
        label=hit.label,
        heading=hit.heading,
        start=hit.start,
        end=hit.end,
        text=hit.text,
    )
