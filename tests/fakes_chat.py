"""The chat room without a model: the real history, and answers at a chosen pace."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from app.chat.answer_form import MadeIn
from app.chat.chat_model import ChatModel
from app.chat.example import Example
from app.chat.forms import Forms
from app.chat.message import Conversation, Message, MessageState, Role
from app.chat.prospect import Likely, Prospect, Step
from app.chat.senses import TEXT_ALONE
from app.chat.sight import Beginning, Fill, Sight, WholeSight
from app.documents.embedding.choice import NONE
from app.documents.embedding.embeddings import Embedding
from app.documents.grounds import Grounds
from app.documents.library import Library
from app.documents.reading import Reader
from app.documents.received import Received
from app.documents.scope import Scope
from app.history.conversations import Conversations
from app.history.database import Database
from app.launch.start_facts import StartFacts
from app.media.attachment import Attachment
from app.media.pending import Pending
from app.models.library import ModelLibrary
from app.models.local import LocalModel
from app.models.starter import starter_model
from app.paths import Paths
from app.presets.store import Presets
from app.settings import Settings
from app.updates.updates import Updates
from engine.adapter import Adapter
from engine.errors import PromptTooLong, UsageError
from engine.media import MediaKind
from engine.metrics import Timings
from engine.sampling_params import SamplingParams
from tests import fake_embedder
from tests.fakes_cuda import FakeCuda
from tests.fakes_machine import FakeMachine
from tests.fakes_model import FakeEngine, fake_chat_model

TIMINGS = Timings(
    prefilled_tokens=32, cached_tokens=380, completion_tokens=40, ttft_ms=412, tpot_ms=32.05
)
PROMPT_TOKENS = 4000
LONGEST_PROMPT = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeAnswer:
    message: Message
    num_prompt_tokens: int = PROMPT_TOKENS
    num_prompt_tokens_read: int = PROMPT_TOKENS
    doing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What the fake model says. With a turnstile, each step of its reading waits there. In a
    conversation that asks documents it stands on `grounds`, whose citations come at its end."""

    pieces: Sequence[str] = ("Hello", " there", ".")
    thinking: Sequence[str] = ()
    pace_s: float = 0.02
    finish_reason: str = "stop"
    grounds: Grounds | None = None
    turnstile: asyncio.Semaphore | None = None

    def growing(self) -> Iterator[tuple[str, str]]:
        """The field that grows, and its text so far."""
        for name, pieces in (("thinking", self.thinking), ("content", self.pieces)):
            for end in range(1, len(pieces) + 1):
                yield name, "".join(pieces[:end])


class FakeJob:
    """An answer that grows. Owned by the event loop."""

    def __init__(self, answer: FakeAnswer) -> None:
        self.answer = answer
        self.is_stopped = False
        self._changed = asyncio.Event()

    def show(self, answer: FakeAnswer) -> None:
        self.answer = answer
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def follow(self, hz: float = 8.0) -> AsyncIterator[FakeAnswer]:
        while True:
            answer, changed = self.answer, self._changed
            yield answer
            if answer.message.state is not MessageState.STREAMING:
                return
            await changed.wait()
            await asyncio.sleep(1 / hz)


class FakeJobs:
    """Answers every message with `script`. Owned by the event loop."""

    def __init__(self, conversations: Conversations) -> None:
        self.script = Script()
        self._conversations = conversations
        self.continued: list[tuple[str, int, int]] = []
        self._running: dict[str, FakeJob] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, conversation_id: str) -> FakeJob | None:
        return self._running.get(conversation_id)

    async def send(
        self, conversation_id: str, text: str, attachments: Sequence[Attachment] = ()
    ) -> FakeJob:
        if conversation_id in self._running:
            raise UsageError("This conversation is still answering: stop it first.")
        if len(text) > LONGEST_PROMPT:
            raise PromptTooLong(len(text), LONGEST_PROMPT)
        conversation = await self._conversations.get(conversation_id)
        turn = await self._conversations.begin_turn(
            conversation_id,
            text,
            form=conversation.answer_form,
            attachments=attachments,
            grounds=self._grounds(conversation),
        )
        return self._start(turn.answer)

    async def sum_up(self, conversation_id: str) -> FakeJob:
        """As a message of the user."""
        return await self.send(conversation_id, "Sum up the file, section by section.")

    async def regenerate(self, conversation_id: str) -> FakeJob:
        (answered, _) = await self._conversations.messages(conversation_id, limit=2)
        conversation = await self._conversations.get(conversation_id)
        return self._start(
            await self._conversations.begin_answer(
                conversation_id,
                answered.message_id,
                conversation.answer_form,
                self._grounds(conversation),
            )
        )

    async def continue_from(
        self, conversation_id: str, answer_id: str, place: int, token_id: int
    ) -> FakeJob:
        self.continued.append((answer_id, place, token_id))
        return await self.regenerate(conversation_id)

    def stop(self, conversation_id: str) -> None:
        if job := self._running.get(conversation_id):
            job.is_stopped = True
            if self.script.turnstile:
                for _ in range(3):
                    self.script.turnstile.release()

    def _grounds(self, conversation: Conversation) -> Grounds | None:
        """As they are before the answer is written."""
        grounds = self.script.grounds
        return None if grounds is None or conversation.documents is None else grounds.unchecked()

    def _start(self, empty: Message) -> FakeJob:
        job = FakeJob(FakeAnswer(message=empty, num_prompt_tokens_read=0))
        self._running[empty.conversation_id] = job
        task = asyncio.get_running_loop().create_task(self._write(job, self.script))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def _write(self, job: FakeJob, script: Script) -> None:
        message = job.answer.message
        if script.turnstile:
            for num_read in (1024, 2048, PROMPT_TOKENS):
                await script.turnstile.acquire()
                job.show(FakeAnswer(message=message, num_prompt_tokens_read=num_read))
        for name, text in script.growing():
            if job.is_stopped:
                break
            message = replace(message, **{name: text})
            job.show(FakeAnswer(message=message))
            await asyncio.sleep(script.pace_s)
        message = replace(
            message,
            state=MessageState.STOPPED if job.is_stopped else MessageState.DONE,
            finish_reason="abort" if job.is_stopped else script.finish_reason,
            timings=TIMINGS.as_json(),
            grounds=message.grounds and script.grounds,
        )
        await self._conversations.finish_answer(message)
        del self._running[message.conversation_id]
        job.show(FakeAnswer(message=message))


class FakeSights:
    """Nothing can be said of a model that is not there, unless a test says it."""

    whole_sight: WholeSight | None = None
    filled: Fill | None = None
    """How full a conversation is that reads a document whole."""

    async def fill(
        self,
        conversation_id: str | None,
        typed: str,
        begun: Beginning | None = None,
        attachments: Sequence[Attachment] = (),
        documents: Scope | None = None,
    ) -> Fill | None:
        return self.filled if documents is not None and documents.as_whole else None

    async def whole(self, documents: Scope, conversation_id: str | None) -> WholeSight | None:
        return self.whole_sight

    async def saw(self, answer_id: str) -> Sight:
        raise UsageError("The model is not loaded yet: ask again in a moment.")


class FakeProspects:
    """Two tokens, whose chances are those of the temperature."""

    async def look(
        self,
        conversation_id: str | None,
        params: SamplingParams,
        system_prompt: str = "",
        examples: Sequence[Example] = (),
    ) -> Prospect:
        p = min(0.9, params.temperature / 2)
        return Prospect(
            steps=(Step("model", 3, 0.1), Step("temperature", 2, 0.0)),
            tokens=(Likely(1, " <b>", False, (0.6, 1 - p)), Likely(2, "<|end|>", True, (0.3, p))),
            is_sample=conversation_id is None,
            has_form=False,
        )


class FakeModelInUse:
    """A model that is never loaded; `services` keep what is chosen for it."""

    def __init__(self, services: "FakeServices") -> None:
        self._services = services
        self.name = "SmolLM2 135M Instruct"
        self.used: list[Path] = []

    async def use(self, path: Path) -> str:
        self.used.append(path)
        return ""

    async def use_adapters(self, adapters: Sequence[Adapter]) -> str:
        services = self._services
        services.settings = services.settings.with_adapters(services.model_path, adapters)
        return ""

    async def remove(self, model: LocalModel) -> None:
        self._services.library.remove(model)

    async def reload(self) -> None:
        raise UsageError("There is no model to load.")

    async def limit_kv(self, ram_bytes: int | None, disk_bytes: int) -> None:
        self._services.settings = replace(
            self._services.settings, kv_ram_bytes=ram_bytes, kv_disk_bytes=disk_bytes
        )

    async def forget_kv(self) -> None:
        pass


class FakeServices:
    """Everything the page asks for, with its history in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.database = Database(folder / "history.sqlite3")
        self.conversations = Conversations(self.database)
        self.jobs = FakeJobs(self.conversations)
        self.sights = FakeSights()
        self.chat_model = fake_chat_model(FakeEngine())
        self.grammars = folder / "grammars"
        self.forms = Forms(self.grammars, self._model)
        self.prospects = FakeProspects()
        self.presets = Presets(folder / "presets.json")
        self.paths = Paths.from_environment({"INGLENOOK_HOME": str(folder)})
        self.paths.create()
        self.library = ModelLibrary(self.paths, lambda: self.settings)
        self.received = Received(self.paths.received)
        self.cuda = FakeCuda(self.paths)
        self.updates = Updates(self.library.connections, lambda: "")
        self.pending = Pending()
        self.senses = TEXT_ALONE
        self.model = FakeModelInUse(self)
        self.memory = None
        self.start_facts = StartFacts()
        self.machine = FakeMachine()
        self.settings = Settings(
            default_system_prompt="You are a helpful assistant.", embedder=NONE
        )
        self.is_starter_model = True
        self.model_error = ""
        self.model_notice = ""
        self.url = "http://127.0.0.1:7341"
        self.api_key = "ink-made-for-tests"

    @cached_property
    def documents(self) -> Library:
        """With real reading, since only few tests ask for it."""
        return Library(
            self.paths.documents,
            Reader(),
            self.paths.own,
            received=self.paths.received,
            embedding=Embedding(
                self.paths.embedders,
                lambda: self.settings.embedder_choice,
                command=fake_embedder.COMMAND,
            ),
        )

    async def _model(self) -> ChatModel:
        return self.chat_model

    async def check_readable(self, kind: MediaKind) -> None:
        if not self.senses.can_read(kind):
            raise UsageError(f"The fake model cannot read {kind.value}.")

    def save_settings(self, settings: Settings) -> None:
        self.settings = settings

    @property
    def model_path(self) -> Path:
        path = starter_model()
        assert path is not None
        return path

    @property
    def adapters(self) -> tuple[Adapter, ...]:
        return self.settings.adapters_of(self.model_path)

    async def tell(
        self,
        conversation_id: str,
        texts: Sequence[str],
        state: MessageState = MessageState.DONE,
        notice: str = "",
        made_in: MadeIn | None = None,
        finish_reason: str = "stop",
        **more: Any,
    ) -> None:
        """Store these as messages of the user and of the model in turn."""
        for text, reply in zip(texts[::2], texts[1::2], strict=True):
            turn = await self.conversations.begin_turn(conversation_id, text)
            assert turn.user.role is Role.USER
            await self.conversations.finish_answer(
                replace(
                    turn.answer,
                    content=reply,
                    state=state,
                    notice=notice,
                    made_in=made_in,
                    finish_reason=finish_reason,
                    timings=TIMINGS.as_json(),
                    **more,
                )
            )
