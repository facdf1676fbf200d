"""The servers that a chat workload is run on: ours, llama.cpp's, or one that runs already."""

import http.client
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from app.api.keys import api_key
from app.bench.app_process import AppProcess
from app.bench.llama_server import READ_S, REMEMBERING, LlamaServer
from app.paths import Paths
from app.settings import Settings, save_settings
from engine.errors import EngineError

P = TypeVar("P", bound=AppProcess | LlamaServer)

SLOTS = 4
# A restored slot needs room of its own; a single one gives up what it held for it.
SLOT = 0


class Server(Protocol):
    """A place where /v1 is answered. `pid` is None where the process is not ours to watch."""

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def key(self) -> str: ...

    @property
    def pid(self) -> int | None: ...

    @property
    def is_running(self) -> bool: ...

    @property
    def fields(self) -> Mapping[str, Any]:
        """What a request here says besides."""
        ...

    def start(self) -> None: ...

    def end(self, *, kill: bool) -> None:
        """Begin to end it: as its user does, or as a power cut would."""
        ...

    def close(self) -> None:
        """Wait for its end, which comes now if it has not begun."""
        ...

    def keep(self, chat_id: str) -> None:
        """What its user does after a conversation's last answer before a restart."""
        ...

    def bring_back(self, chat_id: str) -> None:
        """What its user does before the conversation's first question after a restart."""
        ...


class ProcessServer(Generic[P]):
    """What a server has whose process is ours: it is launched anew by every start."""

    fields: Mapping[str, Any] = {}

    def __init__(self, launch: Callable[[], P]) -> None:
        self._launch = launch
        self._launched: P | None = None

    @property
    def url(self) -> str:
        return self._process.url

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._launched is not None and self._launched.is_running

    def start(self) -> None:
        self._launched = self._launch()

    def end(self, *, kill: bool) -> None:
        self._process.end(kill=kill)

    def close(self) -> None:
        if self._launched is not None:
            self._launched.close()

    def keep(self, chat_id: str) -> None:
        """Nothing, if its user need not do anything."""

    def bring_back(self, chat_id: str) -> None:
        """Nothing, likewise."""

    @property
    def _process(self) -> P:
        assert self._launched is not None, "it was not started"
        return self._launched


class OurServer(ProcessServer[AppProcess]):
    """Inglenook in a home that outlives a restart. Nothing is asked of its user."""

    name = "ours"

    def __init__(self, home: Path, model: Path, context_tokens: int) -> None:
        super().__init__(lambda: AppProcess(home, str(model)).__enter__())
        self._paths = Paths.from_environment({"INGLENOOK_HOME": str(home)})
        self._paths.create()
        save_settings(self._paths.settings, Settings(context_tokens=context_tokens))

    @property
    def key(self) -> str:
        return api_key(self._paths)


class LlamaChatServer(ProcessServer[LlamaServer]):
    """llama.cpp's server with what is best for many conversations.

    With a `slot_folder` its user has a script that saves the slot after a conversation's last
    answer, because the next conversation pushes it out, and restores it before the next question.
    """

    name = "llama.cpp"
    key = ""

    def __init__(
        self,
        program: Path,
        model: Path,
        *,
        context_tokens: int,
        threads: int,
        slot_folder: Path | None = None,
    ) -> None:
        super().__init__(
            lambda: LlamaServer(
                program,
                model,
                streams=SLOTS,
                context_tokens=context_tokens,
                threads=threads,
                memory=REMEMBERING,
                slot_folder=slot_folder,
            ).__enter__()
        )
        self._has_slots = slot_folder is not None
        if self._has_slots:
            self.fields = {"id_slot": SLOT}

    def keep(self, chat_id: str) -> None:
        self._slot("save", chat_id)

    def bring_back(self, chat_id: str) -> None:
        self._slot("restore", chat_id)

    def _slot(self, action: str, chat_id: str) -> None:
        if not self._has_slots:
            return
        connection = http.client.HTTPConnection("127.0.0.1", self._process.port, timeout=READ_S)
        try:
            body = json.dumps({"filename": f"{chat_id}.slot"})
            headers = {"Content-Type": "application/json"}
            connection.request("POST", f"/slots/{SLOT}?action={action}", body, headers)
            response = connection.getresponse()
            said = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise EngineError(
                f"llama-server could not {action} a slot: {said.decode('utf-8', 'replace')}"
            )


class RunningServer:
    """One that somebody else has started and will end. It can only be asked."""

    name = "peer"
    pid = None
    is_running = True
    fields: Mapping[str, Any] = {}

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key

    def start(self) -> None:
        pass

    def end(self, *, kill: bool) -> None:
        raise EngineError("A server that was running before cannot be restarted.")

    def close(self) -> None:
        pass

    def keep(self, chat_id: str) -> None:
        pass

    def bring_back(self, chat_id: str) -> None:
        pass
