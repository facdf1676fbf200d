"""The chat room without a model: conversations in memory, answers at a chosen pace."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.chat.message import Conversation, Message, MessageState, Role
from engine.errors import NotFound, PromptTooLong, UsageError
from engine.metrics import Timings
from engine.sampling_params import SamplingParams

TIMINGS = Timings(
    prefilled_tokens=32, cached_tokens=380, completion_tokens=40, ttft_ms=412, tpot_ms=32.05
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeAnswer:
    message: Message
    num_prompt_tokens: int = 4000
    num_prompt_tokens_read: int = 4000


@dataclass(frozen=True, slots=True)
class FakeHit:
    conversation: Conversation
    message_id: str | None
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeSettings:
    default_system_prompt: str = "You are a helpful assistant."
    sampling: SamplingParams = field(default_factory=SamplingParams)


class FakeConversations:
    """A dict of conversations, each a list of messages. Owned by the event loop."""

    def __init__(self) -> None:
        self.known: dict[str, Conversation] = {}
        self.said: dict[str, list[Message]] = {}
        self.deleted: set[str] = set()
        self._numbers = itertools.count(1)

    async def create(
        self, title: str = "", system_prompt: str = "", sampling: Mapping[str, Any] | None = None
    ) -> Conversation:
        now = time.time()
        made = Conversation(
            conversation_id=f"c{next(self._numbers)}",
            title=title,
            created_at=now,
            updated_at=now,
            system_prompt=system_prompt,
            sampling=dict(sampling or {}),
        )
        self.known[made.conversation_id] = made
        self.said[made.conversation_id] = []
        return made

    async def get(self, conversation_id: str) -> Conversation:
        if conversation_id not in self.known or conversation_id in self.deleted:
            raise NotFound("This conversation does not exist any more.")
        return self.known[conversation_id]

    async def list(self, limit: int = 200, offset: int = 0) -> Sequence[Conversation]:
        kept = [one for key, one in self.known.items() if key not in self.deleted]
        newest = sorted(kept, key=lambda one: one.updated_at, reverse=True)
        return newest[offset : offset + limit]

    def change(self, conversation_id: str, **changes: Any) -> None:
        self.known[conversation_id] = replace(self.known[conversation_id], **changes)

    async def rename(self, conversation_id: str, title: str) -> None:
        self.change(conversation_id, title=title)

    async def set_system_prompt(self, conversation_id: str, text: str) -> None:
        self.change(conversation_id, system_prompt=text)

    async def set_sampling(self, conversation_id: str, sampling: Mapping[str, Any]) -> None:
        self.change(conversation_id, sampling=dict(sampling))

    async def delete(self, conversation_id: str) -> None:
        self.deleted.add(conversation_id)

    async def restore(self, conversation_id: str) -> None:
        self.deleted.discard(conversation_id)

    async def purge(self, conversation_id: str) -> None:
        self.known.pop(conversation_id)

    async def messages(self, conversation_id: str, limit: int | None = None) -> Sequence[Message]:
        said = self.said[conversation_id]
        return said[-limit:] if limit else list(said)

    async def num_messages(self, conversation_id: str) -> int:
        return len(self.said[conversation_id])

    def add(self, conversation_id: str, role: Role, content: str, **changes: Any) -> Message:
        said = self.said[conversation_id]
        message = Message(
            message_id=f"m{next(self._numbers)}",
            conversation_id=conversation_id,
            parent_id=said[-1].message_id if said else None,
            role=role,
            content=content,
            created_at=time.time(),
            **changes,
        )
        said.append(message)
        self.change(conversation_id, updated_at=message.created_at)
        return message

    def put(self, message: Message) -> None:
        said = self.said[message.conversation_id]
        said[[one.message_id for one in said].index(message.message_id)] = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What the fake model says: pieces, and how long it waits before and between them."""

    pieces: Sequence[str]
    thinking: Sequence[str] = ()
    pace_s: float = 0.03
    reading_s: float = 0.0


class FakeJob:
    def __init__(self, answer: FakeAnswer) -> None:
        self.answer = answer
        self.changed = asyncio.Event()
        self.is_stopped = False

    @property
    def conversation_id(self) -> str:
        return self.answer.message.conversation_id

    def show(self, answer: FakeAnswer) -> None:
        self.answer = answer
        self.changed.set()
        self.changed = asyncio.Event()

    async def follow(self, hz: float = 8.0) -> AsyncIterator[FakeAnswer]:
        while True:
            answer, changed = self.answer, self.changed
            yield answer
            if answer.message.state is not MessageState.STREAMING:
                return
            await changed.wait()
            await asyncio.sleep(1 / hz)


class FakeJobs:
    def __init__(self, conversations: FakeConversations) -> None:
        self.conversations = conversations
        self.running: dict[str, FakeJob] = {}
        self.script = Script(pieces=["Hello", " there", "."])
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, conversation_id: str) -> FakeJob | None:
        return self.running.get(conversation_id)

    async def send(self, conversation_id: str, text: str) -> FakeJob:
        if conversation_id in self.running:
            raise UsageError("This conversation is still answering: stop it first.")
        if len(text) > 2_000_000:
            raise PromptTooLong(len(text), 2_000_000)
        conversation = await self.conversations.get(conversation_id)
        if not conversation.title:
            self.conversations.change(conversation_id, title=" ".join(text.split()[:6]))
        self.conversations.add(conversation_id, Role.USER, text)
        return self._start(conversation_id)

    async def regenerate(self, conversation_id: str) -> FakeJob:
        self.conversations.said[conversation_id].pop()
        return self._start(conversation_id)

    def stop(self, conversation_id: str) -> None:
        with contextlib.suppress(KeyError):
            self.running[conversation_id].is_stopped = True

    def _start(self, conversation_id: str) -> FakeJob:
        empty = self.conversations.add(
            conversation_id, Role.ASSISTANT, "", state=MessageState.STREAMING, model="fake"
        )
        job = FakeJob(FakeAnswer(message=empty, num_prompt_tokens_read=0))
        self.running[conversation_id] = job
        task = asyncio.get_running_loop().create_task(self._write(job, self.script))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def _write(self, job: FakeJob, script: Script) -> None:
        message = job.answer.message
        for share in (1, 2, 3):
            if script.reading_s and not job.is_stopped:
                await asyncio.sleep(script.reading_s / 3)
                job.show(FakeAnswer(message=message, num_prompt_tokens_read=share * 1024))
        for name, text in _growing(script):
            if job.is_stopped:
                break
            message = replace(message, **{name: text})
            job.show(FakeAnswer(message=message))
            await asyncio.sleep(script.pace_s)
        state = MessageState.STOPPED if job.is_stopped else MessageState.DONE
        reason = "abort" if job.is_stopped else "stop"
        message = replace(message, state=state, finish_reason=reason, timings=TIMINGS.as_json())
        self.conversations.put(message)
        self.running.pop(job.conversation_id)
        job.show(FakeAnswer(message=message))


def _growing(script: Script) -> Iterator[tuple[str, str]]:
    for name, pieces in (("thinking", script.thinking), ("content", script.pieces)):
        yield from ((name, "".join(pieces[: end + 1])) for end in range(len(pieces)))


class FakeServices:
    """Everything the page asks for, in memory."""

    def __init__(self) -> None:
        self.conversations = FakeConversations()
        self.jobs = FakeJobs(self.conversations)
        self.settings = FakeSettings()
        self.model_name = "SmolLM2 135M"
        self.is_starter_model = True

    async def search(self, query: str) -> Sequence[FakeHit]:
        hits = []
        for conversation in await self.conversations.list():
            texts = [conversation.title]
            texts += [one.content for one in self.conversations.said[conversation.conversation_id]]
            hits += [FakeHit(conversation, None, text) for text in texts if query in text]
        return hits
