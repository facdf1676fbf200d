"""Answers that are being written, whoever looks on.

A job belongs to its conversation and to nobody's page: a reload, a closed tab or a second tab
changes nothing, and whoever comes later follows the same job.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from app.chat.idle import IdleWork
from app.chat.message import MessageState
from app.chat.session import ChatSession
from app.chat.writing import Answer, Writing
from app.media.attachment import Attachment
from engine.errors import UsageError

STILL_ANSWERING = "This conversation is still being answered: stop that answer first."


class Job:
    """One answer on its way. Owned by the event loop."""

    def __init__(self, conversation_id: str, writing: Writing, task: "asyncio.Task[None]") -> None:
        self.conversation_id = conversation_id
        self._writing = writing
        self._task = task

    @property
    def answer(self) -> Answer:
        return self._writing.answer

    @property
    def is_over(self) -> bool:
        """Written and stored. An answer that could not be stored yet is still a job."""
        return self._task.done()

    def stop(self) -> None:
        self._writing.stop()

    async def follow(self, hz: float = 8.0) -> AsyncIterator[Answer]:
        """How it stands now, then at most `hz` times a second while it changes, then its end.

        A slow reader misses moments and never delays the writer; closing the iterator does not
        stop the job.
        """
        seen: Answer | None = None
        while True:
            answer = self.answer
            if answer != seen:
                seen = answer
                yield answer
            if self._task.done():
                if self.answer != seen:
                    yield self.answer
                return
            await asyncio.wait([self._task], timeout=1.0 / hz)

    async def finished(self) -> Answer:
        await asyncio.wait([self._task])
        return self.answer

    async def cancel(self) -> None:
        """The app is closing: keep what is there, marked as interrupted."""
        self._task.cancel()
        await asyncio.wait([self._task])


class Jobs:
    """At most one job a conversation. Owned by the event loop.

    Between two jobs of a conversation `idle` does what nobody waits for.
    """

    def __init__(self, session: ChatSession, idle: IdleWork) -> None:
        self._session = session
        self._idle = idle
        self._jobs: dict[str, Job] = {}
        self._starting: dict[str, asyncio.Task[Job]] = {}
        self._stopped_early: set[str] = set()

    def get(self, conversation_id: str) -> Job | None:
        return self._jobs.get(conversation_id)

    @property
    def num_running(self) -> int:
        """Answers that are written, and those of messages that are not stored yet."""
        return len(self._jobs.keys() | self._starting.keys())

    @property
    def num_starting(self) -> int:
        """Messages that wait, for the model above all, and are not stored yet."""
        return len(self._starting.keys() - self._jobs.keys())

    def running(self) -> list[Job]:
        return list(self._jobs.values())

    async def send(
        self, conversation_id: str, text: str, attachments: Sequence[Attachment] = ()
    ) -> Job:
        """Store the message and start its answer. Raises before anything is stored."""
        return await self._start(
            conversation_id,
            lambda: self._session.plan_reply(conversation_id, text, attachments),
        )

    async def regenerate(self, conversation_id: str) -> Job:
        """Start another answer to the last message of the user."""
        return await self._start(conversation_id, lambda: self._session.plan_again(conversation_id))

    async def sum_up(self, conversation_id: str) -> Job:
        """Start a summary of the one document that the conversation asks, section by section."""
        return await self._start(
            conversation_id, lambda: self._session.plan_digest(conversation_id)
        )

    async def continue_from(
        self, conversation_id: str, answer_id: str, place: int, token_id: int
    ) -> Job:
        """Start another answer, which goes its own way from a token of an old one on."""
        return await self._start(
            conversation_id,
            lambda: self._session.plan_continued(conversation_id, answer_id, place, token_id),
        )

    def stop(self, conversation_id: str) -> None:
        """End the running answer and keep what it says so far. Harmless when there is none."""
        job = self._jobs.get(conversation_id)
        if job is not None:
            job.stop()
        elif conversation_id in self._starting:
            self._stopped_early.add(conversation_id)

    async def leave(self, conversation_id: str) -> None:
        """The conversation is gone: end all that goes on for it."""
        self.stop(conversation_id)
        self._idle.cancel(conversation_id)
        await self._answered(conversation_id)
        # The end of an answer gives occasion to more.
        self._idle.cancel(conversation_id)
        await self._idle.at_rest(conversation_id)

    async def at_rest(self, conversation_id: str) -> None:
        """Wait until nothing goes on for the conversation, in the background neither."""
        await self._answered(conversation_id)
        await self._idle.at_rest(conversation_id)

    async def leave_idle_work(self) -> None:
        """The model goes: what nobody waits for is left undone."""
        await self._idle.close()

    async def close(self) -> None:
        """Keep what is being written, marked as interrupted."""
        starting = list(self._starting.values())
        for task in starting:
            task.cancel()
        if starting:
            await asyncio.wait(starting)
        for job in list(self._jobs.values()):
            await job.cancel()
        await self._idle.close()

    async def _answered(self, conversation_id: str) -> None:
        if conversation_id in self._starting:
            await asyncio.wait([self._starting[conversation_id]])
        if conversation_id in self._jobs:
            await self._jobs[conversation_id].finished()

    async def _start(self, conversation_id: str, plan: Callable[[], Awaitable[Writing]]) -> Job:
        job = self._jobs.get(conversation_id)
        if job is not None and job.answer.message.state is not MessageState.STREAMING:
            raise UsageError(job.answer.message.notice or STILL_ANSWERING)
        if job is not None or conversation_id in self._starting:
            raise UsageError(STILL_ANSWERING)
        self._idle.cancel(conversation_id)
        # A task of its own: a page that goes away while the message is stored must not leave an
        # answer behind that nobody writes.
        task = asyncio.create_task(self._begin(conversation_id, plan))
        self._starting[conversation_id] = task
        task.add_done_callback(_look_at)
        return await asyncio.shield(task)

    async def _begin(self, conversation_id: str, plan: Callable[[], Awaitable[Writing]]) -> Job:
        try:
            writing = await plan()
            if conversation_id in self._stopped_early:
                writing.stop()
            task = asyncio.create_task(self._write(conversation_id, writing))
            job = self._jobs[conversation_id] = Job(conversation_id, writing, task)
            return job
        finally:
            del self._starting[conversation_id]
            self._stopped_early.discard(conversation_id)

    async def _write(self, conversation_id: str, writing: Writing) -> None:
        try:
            await self._session.reply(writing)
        finally:
            # Here and not in a callback: who sees the end may send the next message at once.
            del self._jobs[conversation_id]
        self._idle.begin(writing)


def _look_at(task: "asyncio.Task[Job]") -> None:
    """Whoever asked may have gone; then nobody else takes the error out of the task."""
    if not task.cancelled():
        task.exception()
