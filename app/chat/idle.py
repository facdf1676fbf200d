"""What is done for a conversation between two turns, while nobody waits for anything.

    answer stored -> what the next turn will send is read, where it is not held -> a title

Both go to the engine as background work, which stands back for everybody; a next message cancels
them. Nothing here is ever missed: undone, it is only the next turn that takes longer.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from app.chat.message import MessageState, Role
from app.chat.thinking import ThinkingSplitter
from app.chat.title import MAX_TOKENS, QUESTION, clean_title, first_words
from app.chat.turns import Turn
from app.chat.writing import Writing
from app.history.conversations import Conversations
from engine.errors import InglenookError
from engine.request import FinishReason, RequestOptions
from engine.sampling_params import SamplingParams

logger = logging.getLogger(__name__)

GREEDY = SamplingParams(temperature=0.0, max_tokens=MAX_TOKENS)


class IdleWork:
    """At most one piece of work a conversation. Owned by the event loop.

    `gives_titles` says whether the model that is loaded names conversations.
    """

    def __init__(self, conversations: Conversations, gives_titles: Callable[[], bool]) -> None:
        self._conversations = conversations
        self._gives_titles = gives_titles
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def num_running(self) -> int:
        return len(self._tasks)

    def begin(self, writing: Writing) -> None:
        """An answer is stored: do what it gives occasion to."""
        answer = writing.message
        is_usable = answer.state in (MessageState.DONE, MessageState.STOPPED)
        if not is_usable or not answer.content.strip() or not writing.question.is_asked:
            return
        conversation_id = answer.conversation_id
        self.cancel(conversation_id)
        task = asyncio.create_task(self._work(writing))
        self._tasks[conversation_id] = task
        task.add_done_callback(lambda task: self._end(conversation_id, task))

    def cancel(self, conversation_id: str) -> None:
        """Something else is wanted of the conversation now. Harmless when there is nothing."""
        if conversation_id in self._tasks:
            self._tasks[conversation_id].cancel()

    async def at_rest(self, conversation_id: str) -> None:
        """Wait for the end of what goes on for a conversation."""
        if conversation_id in self._tasks:
            await asyncio.wait([self._tasks[conversation_id]])

    async def close(self) -> None:
        """End all of it; more may begin."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _end(self, conversation_id: str, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(conversation_id) is task:
            del self._tasks[conversation_id]

    async def _work(self, writing: Writing) -> None:
        try:
            await self._prepare(writing)
            await self._name(writing)
        except InglenookError as error:
            logger.info("idle work was left undone: %s", error)

    async def _prepare(self, writing: Writing) -> None:
        """Read what the next turn will send, if it is not what this one has left behind.

        Templates may strip an answer's thinking or write it in another form; and in reproducible
        mode what was generated token by token is not used again.
        """
        question, answer = writing.question, writing.message
        model = question.model
        path = (*_as_read_later(question.path), Turn.of(answer))
        prefix = await model.prefix(path, question.system_prompt, question.clock)
        options = replace(question.options, is_preparation=True, num_logprobs=None)
        held = [*question.prompt, *answer.token_ids]
        if not options.is_reproducible and _goes_on(held, prefix):
            return
        engine = model.loaded.engine
        if not prefix or len(prefix) >= engine.max_request_tokens:
            return
        with engine.submit(prefix, GREEDY, options) as stream:
            async for _ in stream:
                pass

    async def _name(self, writing: Writing) -> None:
        """Let the model name the conversation after its first answer, if nobody else has."""
        question, answer = writing.question, writing.message
        num_said = sum(turn.role is Role.USER for turn in question.path) - len(question.examples)
        is_first = num_said == 1
        if not (is_first and answer.state is MessageState.DONE and self._gives_titles()):
            return
        conversation_id = answer.conversation_id
        conversation = await self._conversations.get(conversation_id)
        provisional = first_words(question.path[-1].content)
        if conversation.title != provisional:
            return
        title = await self._ask_for_title(writing)
        if title and title != provisional:
            await self._conversations.replace_title(conversation_id, provisional, title)

    async def _ask_for_title(self, writing: Writing) -> str:
        question, answer = writing.question, writing.message
        model = question.model
        path = (*_as_read_later(question.path), Turn.of(answer), Turn(Role.USER, QUESTION))
        prompt = await model.prompt(path, question.system_prompt, question.clock)
        prompt += model.skipped_thinking(is_thinker=bool(answer.thinking))
        engine = model.loaded.engine
        if len(prompt) + MAX_TOKENS >= engine.max_request_tokens:
            return ""
        splitter = ThinkingSplitter()
        texts: list[str] = []
        is_whole = False
        options = RequestOptions(belonging=question.options.belonging, is_background=True)
        with engine.submit(prompt, GREEDY, options) as stream:
            async for output in stream:
                texts.append(splitter.feed(output.text)[1])
                is_whole = output.finish_reason is FinishReason.STOP
        texts.append(splitter.finish()[1])
        return clean_title("".join(texts), is_whole)


def _as_read_later(path: Sequence[Turn]) -> tuple[Turn, ...]:
    """Passages of files stand before the newest message only."""
    return tuple(replace(turn, lead="") if turn.lead else turn for turn in path)


def _goes_on(held: Sequence[int], prefix: Sequence[int]) -> bool:
    """One of the two is the beginning of the other."""
    num_common = min(len(held), len(prefix))
    return list(held[:num_common]) == list(prefix[:num_common])
