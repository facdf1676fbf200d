"""One turn of a chat, end to end, without a page.

    text -> prompt (ledger) -> stored (history) -> engine -> thinking | answer -> stored

The user's message is in the database before the model sees it, and what the model has written so
far follows every half second, so that whatever ends the app ends no more than that.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from time import monotonic

from app.chat.chat_model import ChatModel
from app.chat.message import Conversation, Message, MessageState, Role
from app.history.conversations import Conversations
from engine.async_engine import OutputStream
from engine.errors import HistoryError, InglenookError, PromptTooLong, UsageError
from engine.metrics import Timings
from engine.request import FinishReason, RequestOutput
from engine.sampling_params import SamplingParams, with_changes

logger = logging.getLogger(__name__)

SAVE_INTERVAL_S = 0.5
RETRY_INTERVAL_S = 2.0
NOT_SAVED = "This answer is not stored yet: "


@dataclass(frozen=True, slots=True)
class Answer:
    """One moment of an answer that is being written."""

    message: Message
    num_prompt_tokens: int
    num_prompt_tokens_read: int


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """An answer that is stored as an empty message and not yet begun."""

    message: Message
    prompt: list[int]
    params: SamplingParams


class Writing:
    """An answer while it grows. Owned by the task that runs `ChatSession.reply`.

    Anyone in the same event loop may look at `answer` or call `stop`.
    """

    def __init__(self, planned: PlannedAnswer, model: ChatModel) -> None:
        self._message = replace(planned.message, model=model.name)
        self._prompt_length = len(planned.prompt)
        self._splitter = model.splitter()
        self._thinking: list[str] = []
        self._content: list[str] = []
        self._token_ids: list[int] = []
        self._num_read = 0
        self._is_stopped = False
        self.stream: OutputStream | None = None

    @property
    def answer(self) -> Answer:
        return Answer(self.message, self._prompt_length, self._num_read)

    @property
    def message(self) -> Message:
        """As it stands; joined on demand, because nobody looks at every token."""
        if self._message.state is not MessageState.STREAMING:
            return self._message
        return replace(
            self._message, content="".join(self._content), thinking="".join(self._thinking)
        )

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    def stop(self) -> None:
        """End it; what is written stays. It may not have begun yet."""
        self._is_stopped = True
        if self.stream is not None:
            self.stream.abort()

    def add(self, output: RequestOutput) -> None:
        self._num_read = max(self._num_read, output.num_prompt_tokens_read)
        self._token_ids.extend(output.token_ids)
        if output.text:
            self._add_text(*self._splitter.feed(output.text))
        if output.finish_reason is not None:
            assert output.timings is not None
            stopped = output.finish_reason is FinishReason.ABORT
            state = MessageState.STOPPED if stopped else MessageState.DONE
            self.end(state, output.finish_reason.value, output.notice, output.timings)

    def end(
        self,
        state: MessageState,
        finish_reason: str = "",
        notice: str = "",
        timings: Timings | None = None,
    ) -> None:
        self._add_text(*self._splitter.finish())
        self._message = replace(
            self.message,
            state=state,
            finish_reason=finish_reason,
            notice=notice,
            token_ids=tuple(self._token_ids),
            timings={} if timings is None else timings.as_json(),
        )

    def note(self, notice: str) -> None:
        """Put a sentence beside the finished answer."""
        self._message = replace(self._message, notice=notice)

    def _add_text(self, thinking: str, content: str) -> None:
        if thinking:
            self._thinking.append(thinking)
        if content:
            self._content.append(content)


class ChatSession:
    """Plans and writes answers. Owned by the event loop.

    `model` gives the loaded model or raises the sentence that says why there is none; `sampling`
    gives the choices a conversation starts from.
    """

    def __init__(
        self,
        conversations: Conversations,
        model: Callable[[], Awaitable[ChatModel]],
        sampling: Callable[[], SamplingParams],
    ) -> None:
        self._conversations = conversations
        self._model = model
        self._sampling = sampling

    async def plan_reply(self, conversation_id: str, text: str) -> PlannedAnswer:
        """Store the user's message and an empty answer, in one transaction.

        Refuses what cannot be answered before anything is stored, so that the text stays where
        the user wrote it.
        """
        if not text.strip():
            raise UsageError("There is nothing to send: write a message first.")
        conversation = await self._conversations.get(conversation_id)
        path = await self._conversations.messages(conversation_id)
        said = Message(
            message_id="",
            conversation_id=conversation_id,
            parent_id=None,
            role=Role.USER,
            content=text,
            created_at=conversation.updated_at,
        )
        prompt = await self._prompt(conversation, [*path, said])
        turn = await self._conversations.begin_turn(conversation_id, text)
        return PlannedAnswer(turn.answer, prompt, self._params(conversation))

    async def plan_again(self, conversation_id: str) -> PlannedAnswer:
        """Another answer to the last message of the user, beside the one that is there."""
        conversation = await self._conversations.get(conversation_id)
        path = await self._conversations.messages(conversation_id)
        while path and path[-1].role is not Role.USER:
            path.pop()
        if not path:
            raise UsageError("There is nothing to answer again: write a message first.")
        prompt = await self._prompt(conversation, path)
        message = await self._conversations.begin_answer(conversation_id, path[-1].message_id)
        return PlannedAnswer(message, prompt, self._params(conversation))

    async def begin(self, planned: PlannedAnswer) -> Writing:
        return Writing(planned, await self._model())

    async def reply(self, planned: PlannedAnswer, writing: Writing) -> None:
        """Write the answer and store it, also when it fails, is stopped or is cancelled."""
        try:
            await self._write(planned, writing)
        except InglenookError as error:
            writing.end(MessageState.FAILED, notice=str(error))
        except asyncio.CancelledError:
            # The app is closing; the database still takes what is there.
            writing.end(MessageState.INTERRUPTED)
            await self._conversations.finish_answer(writing.message)
            raise
        await self._store(writing)

    async def _write(self, planned: PlannedAnswer, writing: Writing) -> None:
        model = await self._model()
        saved = monotonic()
        with model.loaded.engine.submit(planned.prompt, planned.params) as stream:
            writing.stream = stream
            if writing.is_stopped:
                stream.abort()
            async for output in stream:
                writing.add(output)
                if output.text and monotonic() - saved >= SAVE_INTERVAL_S:
                    await self._save_partial(writing)
                    saved = monotonic()

    async def _save_partial(self, writing: Writing) -> None:
        message = writing.message
        try:
            await self._conversations.save_partial(
                message.message_id, message.content, message.thinking
            )
        except HistoryError as error:
            # The whole answer is stored at its end; until then it is in memory.
            logger.warning("a partial answer was not stored: %s", error)

    async def _store(self, writing: Writing) -> None:
        """Store the finished answer, trying again for as long as that fails."""
        notice = writing.message.notice
        while True:
            try:
                await self._conversations.finish_answer(replace(writing.message, notice=notice))
            except HistoryError as error:
                logger.warning("an answer was not stored: %s", error)
                writing.note(NOT_SAVED + str(error))
                await asyncio.sleep(RETRY_INTERVAL_S)
            else:
                writing.note(notice)
                return

    async def _prompt(self, conversation: Conversation, path: list[Message]) -> list[int]:
        model = await self._model()
        prompt = await model.prompt(path, conversation.system_prompt, conversation.created_at)
        limit = model.loaded.engine.max_request_tokens
        if len(prompt) >= limit:
            raise PromptTooLong(len(prompt), limit)
        return prompt

    def _params(self, conversation: Conversation) -> SamplingParams:
        return with_changes(self._sampling(), conversation.sampling)
