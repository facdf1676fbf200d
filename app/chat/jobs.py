"""Answers that are being written, whoever looks on.

A job belongs to its conversation and to nobody's page: a reload, a closed tab or a second tab
changes nothing, and whoever comes later follows the same job.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from app.chat.message import MessageState
from app.chat.session import Answer, ChatSession, PlannedAnswer, Writing
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
    """At most one job a conversation. Owned by the event loop."""

    def __init__(self, session: ChatSession) -> None:
        self._session = session
        self._jobs: dict[str, Job] = {}
        self._starting: set[str] = set()

    def get(self, conversation_id: str) -> Job | None:
        return self._jobs.get(conversation_id)

    @property
    def num_running(self) -> int:
        return len(self._jobs)

    async def send(self, conversation_id: str, text: str) -> Job:
        """Store the message and start its answer. Raises before anything is stored."""
        return await self._start(
            conversation_id, lambda: self._session.plan_reply(conversation_id, text)
        )

    async def regenerate(self, conversation_id: str) -> Job:
        """Start another answer to the last message of the user."""
        return await self._start(conversation_id, lambda: self._session.plan_again(conversation_id))

    def stop(self, conversation_id: str) -> None:
        """End the running answer and keep what it says so far. Harmless when there is none."""
        job = self._jobs.get(conversation_id)
        if job is not None:
            job.stop()

    async def close(self) -> None:
        for job in list(self._jobs.values()):
            await job.cancel()

    async def _start(
        self, conversation_id: str, plan: Callable[[], Awaitable[PlannedAnswer]]
    ) -> Job:
        # Planning waits for the database, so the place is taken before.
        job = self._jobs.get(conversation_id)
        if job is not None and job.answer.message.state is not MessageState.STREAMING:
            raise UsageError(job.answer.message.notice or STILL_ANSWERING)
        if job is not None or conversation_id in self._starting:
            raise UsageError(STILL_ANSWERING)
        self._starting.add(conversation_id)
        try:
            planned = await plan()
            writing = await self._session.begin(planned)
            task = asyncio.create_task(self._session.reply(planned, writing))
            job = self._jobs[conversation_id] = Job(conversation_id, writing, task)
            task.add_done_callback(lambda _: self._jobs.pop(conversation_id, None))
            return job
        finally:
            self._starting.discard(conversation_id)
