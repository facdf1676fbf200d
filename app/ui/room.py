"""What the page asks of the chat room: answers as jobs, which outlive the page that shows them."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from app.chat.example import Example
from app.chat.forms import Forms
from app.chat.message import Message
from app.chat.prospect import Prospect
from app.chat.senses import Senses
from app.chat.sight import Beginning, Fill, Sight
from app.documents.quotation import Quotation
from app.history.conversations import Conversations
from app.history.database import Database
from app.launch.start_facts import StartFacts
from app.machine.check import Check
from app.machine.findings import Findings
from app.media.attachment import Attachment
from app.media.pending import Pending
from app.memory import Memory
from app.models.local import LocalModel
from app.presets.store import Presets
from app.settings import Settings
from engine.adapter import Adapter
from engine.media import MediaKind
from engine.sampling_params import SamplingParams

if TYPE_CHECKING:
    from app.cuda.installation import Installation
    from app.documents.answering import Whereabouts
    from app.documents.library import Library
    from app.documents.received import Received
    from app.models.library import ModelLibrary
    from app.updates.updates import Updates


class Answer(Protocol):
    """One moment of an answer that is being written."""

    @property
    def message(self) -> Message: ...
    @property
    def num_prompt_tokens(self) -> int: ...
    @property
    def num_prompt_tokens_read(self) -> int: ...
    @property
    def doing(self) -> str: ...


class Job(Protocol):
    """An answer on its way. Closing what `follow` gives ends the watching, not the job."""

    @property
    def answer(self) -> Answer: ...
    def follow(self, hz: float = 8.0) -> AsyncIterator[Answer]: ...


class Jobs(Protocol):
    """The answers being written, at most one for each conversation."""

    def get(self, conversation_id: str) -> Job | None: ...
    async def send(
        self, conversation_id: str, text: str, attachments: Sequence[Attachment] = ()
    ) -> Job: ...
    async def regenerate(self, conversation_id: str) -> Job: ...
    async def continue_from(
        self, conversation_id: str, answer_id: str, place: int, token_id: int
    ) -> Job: ...
    def stop(self, conversation_id: str) -> None: ...


class Sights(Protocol):
    """How full the context is, and what an answer was made from."""

    async def fill(
        self,
        conversation_id: str | None,
        typed: str,
        begun: Beginning | None = None,
        attachments: Sequence[Attachment] = (),
    ) -> Fill | None: ...
    async def saw(self, answer_id: str) -> Sight: ...


class Prospects(Protocol):
    """What may come next, and what the sampling controls make of it."""

    async def look(
        self,
        conversation_id: str | None,
        params: SamplingParams,
        system_prompt: str = "",
        examples: Sequence[Example] = (),
    ) -> Prospect: ...


class Answering(Protocol):
    """What became of the files that an answer quotes. Which files a conversation asks is chosen
    with `conversations.set_documents`, and what an answer stands on is `Message.grounds`."""

    async def whereabouts(self, quotations: Sequence[Quotation]) -> Sequence["Whereabouts"]: ...


class Machine(Protocol):
    """The machine that the app runs on, as it was looked at."""

    @property
    def findings(self) -> Findings | None: ...
    @property
    def trials(self) -> Sequence[Check] | None: ...
    async def look(self, *, is_repair: bool = False, is_again: bool = False) -> Findings: ...
    async def try_out(self) -> Sequence[Check]: ...
    def report(self) -> str: ...


class ModelInUse(Protocol):
    """The model that answers, to be loaded anew, and what is kept of what it has read."""

    async def reload(self) -> None: ...
    async def limit_kv(self, ram_bytes: int | None, disk_bytes: int) -> None: ...
    async def forget_kv(self) -> None: ...


class Services(Protocol):
    """The part of the app's services that the page uses."""

    @property
    def database(self) -> Database: ...
    @property
    def conversations(self) -> Conversations: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def sights(self) -> Sights: ...
    @property
    def answering(self) -> Answering: ...
    @property
    def forms(self) -> Forms: ...
    @property
    def prospects(self) -> Prospects: ...
    @property
    def presets(self) -> Presets: ...
    @property
    def pending(self) -> Pending: ...
    @property
    def senses(self) -> Senses: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def start_facts(self) -> StartFacts: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def memory(self) -> Memory | None: ...
    @property
    def model_name(self) -> str: ...
    @property
    def is_starter_model(self) -> bool: ...
    @property
    def model_error(self) -> str: ...
    @property
    def model_notice(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def api_key(self) -> str: ...
    def save_settings(self, settings: Settings) -> None: ...
    @property
    def cuda(self) -> "Installation": ...
    @property
    def library(self) -> "ModelLibrary": ...
    @property
    def documents(self) -> "Library": ...
    @property
    def received(self) -> "Received": ...
    @property
    def updates(self) -> "Updates": ...
    async def check_readable(self, kind: MediaKind) -> None: ...
    @property
    def model(self) -> ModelInUse: ...
    @property
    def model_path(self) -> Path: ...
    @property
    def adapters(self) -> Sequence[Adapter]: ...
    async def use_adapters(self, adapters: Sequence[Adapter]) -> str: ...
    async def use_model(self, path: Path) -> str: ...
    async def remove_model(self, model: LocalModel) -> None: ...
