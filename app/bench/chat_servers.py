"""The servers that a chat workload is run on: ours, llama.cpp's, or one that runs already."""

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from app.api.keys import api_key
from app.bench.app_process import AppProcess
from app.bench.llama_server import READ_S, REMEMBERING, LlamaServer
from app.paths import Paths
from app.settings import Settings, save_settings
from engine.errors import EngineError

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
    def can_restart(self) -> bool: ...

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


class OurServer:
    """Inglenook in a home that outlives a restart. Nothing is asked of its user."""

    name = "ours"
    can_restart = True
    fields: Mapping[str, Any] = {}

    def __init__(self, home: Path, model: Path, context_tokens: int) -> None:
        self._home = home
        self._model = model
        self._paths = Paths.from_environment({"INGLENOOK_HOME": str(home)})
        self._paths.create()
        save_settings(self._paths.settings, Settings(context_tokens=context_tokens))
        self._process: AppProcess | None = None

    @property
    def url(self) -> str:
        return self._started.url

    @property
    def key(self) -> str:
        return api_key(self._paths)

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    def start(self) -> None:
        self._process = AppProcess(self._home, str(self._model)).__enter__()

    def end(self, *, kill: bool) -> None:
        self._started.end(kill=kill)

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def keep(self, chat_id: str) -> None:
        pass

    def bring_back(self, chat_id: str) -> None:
        pass

    @property
    def _started(self) -> AppProcess:
        assert self._process is not None, "it was not started"
        return self._process


class LlamaChatServer:
    """llama.cpp's server with what is best for many conversations.

    With a `slot_folder` its user has a script that saves the slot after a conversation's last
    answer, because the next conversation pushes it out, and restores it before the next question.
    """

    name = "llama.cpp"
    key = ""
    can_restart = True

    def __init__(
        self,
        program: Path,
        model: Path,
        *,
        context_tokens: int,
        threads: int,
        slot_folder: Path | None = None,
    ) -> None:
        self._program = program
        self._model = model
        self._context_tokens = context_tokens
        self._threads = threads
        self._slot_folder = slot_folder
        self._process: LlamaServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._started.port}"

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    @property
    def fields(self) -> Mapping[str, Any]:
        return {"id_slot": SLOT} if self._slot_folder else {}

    def start(self) -> None:
        self._process = LlamaServer(
            self._program,
            self._model,
            streams=SLOTS,
            context_tokens=self._context_tokens,
            threads=self._threads,
            memory=REMEMBERING,
            slot_folder=self._slot_folder,
        ).__enter__()

    def end(self, *, kill: bool) -> None:
        self._started.end(kill=kill)

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def keep(self, chat_id: str) -> None:
        self._slot("save", chat_id)

    def bring_back(self, chat_id: str) -> None:
        self._slot("restore", chat_id)

    def _slot(self, action: str, chat_id: str) -> None:
        if self._slot_folder is None:
            return
        connection = http.client.HTTPConnection("127.0.0.1", self._started.port, timeout=READ_S)
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

    @property
    def _started(self) -> LlamaServer:
        assert self._process is not None, "it was not started"
        return self._process


class RunningServer:
    """One that somebody else has started and will end. It can only be asked."""

    name = "peer"
    pid = None
    is_running = True
    can_restart = False
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
