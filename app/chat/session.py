"""One turn of a chat, end to end, without a page.

    text -> prompt (ledger) -> stored (history) -> engine -> thinking | answer -> stored
                                              (a summary comes first if turns no longer fit,
                                               and the form of the answer is made ready)

The user's message is in the database before the model sees it, and what the model has written so
far follows every half second, so that whatever ends the app ends no more than that.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from app.chat.chat_model import ChatModel
from app.chat.digest import IN_SHORT_HEADING, Digest, progress
from app.chat.guided import MOST_TRIES, Checker
from app.chat.likelihoods import NUM_ALTERNATIVES
from app.chat.measured import together
from app.chat.message import Conversation, Message, MessageState, Role
from app.chat.questions import Questions, begun_by
from app.chat.quotations import marks_only
from app.chat.summary import summarise
from app.chat.whole_progress import WholeProgress
from app.chat.whole_reading import Readers
from app.chat.writing import Writing
from app.documents.grounds import Grounds, nothing_found
from app.documents.scope import Scope
from app.history.conversations import Conversations
from app.media.attachment import Attachment
from app.settings import Settings
from engine.async_engine import OutputStream
from engine.errors import HistoryError, InglenookError, NotFound, UsageError
from engine.guided.answer import Guidance
from engine.metrics import Timings
from engine.request import FinishReason, RequestOutput
from engine.sampling_params import SamplingParams

if TYPE_CHECKING:
    from app.documents.answering import Answering

logger = logging.getLogger(__name__)

SAVE_INTERVAL_S = 0.5
RETRY_INTERVAL_S = 2.0
NOT_SAVED = "This answer is not stored yet: "
WAITING = "Another conversation is reading the same document; it is read once for both…"
UNCHECKED = "Whether the passages say what this answer says could not be checked."
AGAIN = f"The answer did not have its form; asking again, {{number}} of {MOST_TRIES}…"


class ChatSession:
    """Plans and writes answers. Owned by the event loop.

    `model` gives the loaded model or raises the sentence that says why there is none; `settings`
    are the choices a conversation starts from. `answering` opens the user's
    files when a conversation asks them.
    """

    def __init__(
        self,
        conversations: Conversations,
        model: Callable[[], Awaitable[ChatModel]],
        settings: Callable[[], Settings],
        answering: "Callable[[], Answering] | None" = None,
    ) -> None:
        self._conversations = conversations
        self._answering = answering
        self._model = model
        self._questions = Questions(model, settings, answering)
        self._readers = Readers()

    async def plan_reply(
        self, conversation_id: str, text: str, attachments: Sequence[Attachment] = ()
    ) -> Writing:
        """Store the user's message with its attachments and an empty answer, in one transaction.

        Refuses what cannot be answered before anything is stored, so that the text stays where
        the user wrote it.
        """
        if not (text.strip() or attachments):
            raise UsageError("There is nothing to send: write a message first.")
        conversation = await self._asking(conversation_id)
        path = await self._conversations.messages(conversation_id)
        question = await self._questions.of(conversation, path, path, text, attachments)
        # Named, so that it stands where the prompt was made for even if another branch is shown.
        parent_id = path[-1].message_id if path else None
        turn = await self._conversations.begin_turn(
            conversation_id, text, parent_id, question.form, attachments, question.grounds
        )
        return Writing(turn.answer, question)

    async def plan_again(self, conversation_id: str) -> Writing:
        """Another answer to the last message of the user, beside the one that is there."""
        conversation = await self._asking(conversation_id)
        shown = await self._conversations.messages(conversation_id)
        path = list(shown)
        while path and path[-1].role is not Role.USER:
            path.pop()
        if not path:
            raise UsageError("There is nothing to answer again: write a message first.")
        old = shown[len(path)].grounds if len(shown) > len(path) else None
        if old is not None and old.is_summary:
            conversation = replace(conversation, documents=await self._now(old.scope))
            question = await self._questions.of_digest(conversation, path, is_again=True)
        else:
            question = await self._questions.of(conversation, path, shown)
        message = await self._conversations.begin_answer(
            conversation_id, path[-1].message_id, question.form, question.grounds
        )
        return Writing(message, question)

    async def plan_continued(
        self, conversation_id: str, answer_id: str, place: int, token_id: int
    ) -> Writing:
        """Another answer, which goes as an old one does up to a token, has an alternative there,
        and is then continued by the model. It stands beside the old one."""
        path = await self._conversations.path(answer_id)
        answer, asked = path[-1], path[:-1]
        if answer.conversation_id != conversation_id:
            raise NotFound("This answer is in another conversation.")
        model = await self._model()
        begun = begun_by(answer, place, token_id, model.name)
        conversation = replace(
            await self._conversations.get(conversation_id),
            answer_form=answer.made_in.form if answer.made_in else None,
            documents=None,
        )
        question = await self._questions.of(conversation, asked, path, held=answer.grounds)
        if len(begun.token_ids) >= question.params.max_tokens:
            raise UsageError(
                f"This answer would begin with {len(begun.token_ids):,} tokens, and the longest"
                f" answer has {question.params.max_tokens:,}: allow a longer one in the settings."
            )
        # Of all its tokens, or it could not be looked at as a whole.
        options = replace(question.options, num_logprobs=NUM_ALTERNATIVES)
        message = await self._conversations.begin_answer(
            conversation_id, asked[-1].message_id, question.form, question.grounds
        )
        return Writing(message, replace(question, begun=begun, options=options))

    async def plan_digest(self, conversation_id: str) -> Writing:
        """A summary of the one document that the conversation asks, section by section."""
        conversation = await self._asking(conversation_id)
        path = await self._conversations.messages(conversation_id)
        question = await self._questions.of_digest(conversation, path)
        text = question.path[-1].content
        parent_id = path[-1].message_id if path else None
        turn = await self._conversations.begin_turn(
            conversation_id, text, parent_id, grounds=question.grounds
        )
        return Writing(turn.answer, question)

    async def _asking(self, conversation_id: str) -> Conversation:
        """The conversation, which asks its files by the names that they have now."""
        conversation = await self._conversations.get(conversation_id)
        if conversation.documents is None:
            return conversation
        now = await self._now(conversation.documents)
        if now != conversation.documents:
            await self._conversations.set_documents(conversation_id, now)
        return replace(conversation, documents=now)

    async def _now(self, documents: Scope) -> Scope:
        """With the names that its files have now."""
        if self._answering is None:
            return documents
        return (await self._answering().whereabouts(documents)).scope

    async def reply(self, writing: Writing) -> None:
        """Write the answer and store it, also when it fails, is stopped or is cancelled."""
        try:
            await self._write(writing)
        except InglenookError as error:
            writing.end(MessageState.FAILED, notice=str(error))
        except BaseException:
            # The app is closing, or has a fault; the database still takes what is there.
            if not writing.is_over:
                writing.end(MessageState.INTERRUPTED)
            await self._store_now(writing)
            raise
        await self._store(writing)

    async def _write(self, writing: Writing) -> None:
        grounds = writing.question.grounds
        if grounds is not None and not grounds.is_found:
            writing.say(nothing_found(grounds))
            writing.end(MessageState.DONE, FinishReason.STOP.value)
            return
        if writing.question.digest is not None:
            await self._digest(writing, writing.question.digest)
            return
        if writing.question.made.gap is not None:
            await self._sum_up(writing)
            if writing.is_over:
                return
        guidance = await self._guidance(writing)
        checker = Checker(guidance)
        tries = checker.tries(writing.question.params)
        for number, params in enumerate(tries, 1):
            last = await self._ask(writing, writing.question.prompt, params, guidance)
            check = None
            if last.finish_reason is not FinishReason.ABORT:
                check = await checker.check(writing.settle())
            if check is None or check.is_right or number == len(tries) or writing.is_stopped:
                break
            writing.begin_anew(AGAIN.format(number=number + 1))
        if grounds is not None and writing.question.form is None:
            await self._cite(writing, grounds)
        writing.finish(last, check)

    async def _cite(self, writing: Writing, grounds: Grounds) -> None:
        assert self._answering is not None
        try:
            read = writing.question.read
            writing.cite(await self._answering().check(writing.settle(), grounds, read))
        except HistoryError as error:
            logger.warning("an answer was not checked: %s", error)
            writing.warn(f"{UNCHECKED} {error}")

    async def _guidance(self, writing: Writing) -> Guidance | None:
        """How the engine keeps the answer to its form, if it has one; or its brackets to marks, if
        it stands on passages of files."""
        form, grounds = writing.question.form, writing.question.grounds
        if form is None:
            if grounds is None:
                return None
            read = writing.question.read
            given = grounds.quotations if read is None else read.parts
            return await marks_only(writing.question.model, len(given))
        writing.tell("Preparing the form of the answer…")
        guidance = await writing.question.model.guidance(form.grammar)
        writing.tell("")
        return guidance

    async def _digest(self, writing: Writing, digest: Digest) -> None:
        """Section by section: what is there is kept, whatever ends it."""
        began = monotonic()
        guidance = await marks_only(writing.question.model, 0)
        summaries: list[str] = []
        measured: list[Timings] = []
        for number, section in enumerate(digest.sections, start=1):
            notice = progress(digest, number, monotonic() - began)
            writing.part(section.heading)
            writing.note(notice)
            prompt = await digest.prompt_of(section)
            last = await self._ask(writing, prompt, digest.params, guidance, notice)
            measured += [last.timings] if last.timings else []
            if writing.is_stopped:
                break
            summaries.append(writing.settle_part())
        else:
            short = await digest.prompt_in_short(summaries)
            if short is not None:
                writing.part(IN_SHORT_HEADING)
                last = await self._ask(writing, short, digest.params, guidance)
                measured += [last.timings] if last.timings else []
        assert writing.question.grounds is not None
        await self._cite(writing, writing.question.grounds)
        writing.finish(replace(last, timings=together(measured)), None)

    async def _ask(
        self,
        writing: Writing,
        prompt: list[int],
        params: SamplingParams,
        guidance: Guidance | None,
        notice: str = "",
    ) -> RequestOutput:
        """Let the model write; the last output. `notice` stands beside it meanwhile."""
        saved = monotonic()
        last: RequestOutput | None = None
        begun = writing.question.begun
        beginning = begun.token_ids if begun else ()
        belonging = writing.question.options.belonging
        read = writing.question.read if belonging.source else None
        told = ""
        progress = None if read is None else WholeProgress(read, belonging.num_source_tokens)
        async with self._readers.alone(belonging, lambda: _waits(writing)) as note_read:
            if writing.doing == WAITING:
                writing.tell("")
            with self._submit(writing, prompt, params, guidance, beginning) as stream:
                async for last in stream:
                    writing.add(last)
                    if progress is not None:
                        told = _tell(writing, told, progress.after(last.num_prompt_tokens_read))
                    note_read(len(prompt) if last.token_ids else last.num_prompt_tokens_read)
                    is_due = last.finish_reason is None and monotonic() - saved >= SAVE_INTERVAL_S
                    if last.text and is_due:
                        await self._save_partial(writing, notice)
                        saved = monotonic()
        assert last is not None
        return last

    async def _sum_up(self, writing: Writing) -> None:
        """Complete the prompt with a summary of the oldest turns; a stop ends the answer."""
        gap = writing.question.made.gap
        assert gap is not None
        summary = await summarise(
            gap, lambda prompt, params: self._submit(writing, prompt, params), writing.tell
        )
        if summary is None:
            writing.end(MessageState.STOPPED, FinishReason.ABORT.value)
            return
        writing.ask(await gap.closed(summary))
        writing.tell("")

    def _submit(
        self,
        writing: Writing,
        prompt: list[int],
        params: SamplingParams,
        guidance: Guidance | None = None,
        beginning: Sequence[int] = (),
    ) -> OutputStream:
        question = writing.question
        engine = question.model.loaded.engine
        stream = engine.submit(prompt, params, question.options, guidance, beginning)
        writing.stream = stream
        if writing.is_stopped:
            stream.abort()
        return stream

    async def _save_partial(self, writing: Writing, notice: str = "") -> None:
        message = writing.message
        try:
            await self._conversations.save_partial(
                message.message_id, message.content, message.thinking
            )
        except NotFound:
            # The conversation was deleted: nobody wants the rest.
            raise
        except HistoryError as error:
            # The whole answer is stored at its end; until then it is in memory.
            logger.warning("a partial answer was not stored: %s", error)
            writing.note(NOT_SAVED + str(error))
        else:
            writing.note(notice)

    async def _store(self, writing: Writing) -> None:
        """Store the finished answer, trying again for as long as that fails."""
        finished = writing.message
        try:
            while not await self._is_stored(writing, finished):
                await asyncio.sleep(RETRY_INTERVAL_S)
        except asyncio.CancelledError:
            writing.note(finished.notice)
            await self._store_now(writing)
            raise
        writing.note(finished.notice)

    async def _is_stored(self, writing: Writing, finished: Message) -> bool:
        """Try once, and say beside the answer when it failed. A deleted answer counts as stored."""
        try:
            await self._conversations.finish_answer(finished)
        except NotFound:
            logger.info("an answer was deleted while it was written")
        except HistoryError as error:
            logger.warning("an answer was not stored: %s", error)
            writing.note(NOT_SAVED + str(error))
            return False
        return True

    async def _store_now(self, writing: Writing) -> None:
        """The last chance: the app is closing."""
        try:
            await self._conversations.finish_answer(writing.message)
        except HistoryError as error:
            # Also when an earlier try that was cut short has stored it after all.
            logger.warning("an answer was not stored at the end: %s", error)


def _tell(writing: Writing, told: str, doing: str) -> str:
    """Say what goes on now, where it is something else than what was `told` before."""
    if doing != told:
        writing.tell(doing)
    return doing


def _waits(writing: Writing) -> bool:
    """For a document that another conversation is reading: it is read once for both."""
    writing.tell("" if writing.is_stopped else WAITING)
    return not writing.is_stopped
