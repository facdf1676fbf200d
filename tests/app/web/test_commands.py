"""A command that the running app carries out for another process of the same user."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from app.commands.options import Options
from app.commands.relay import lines, relay
from app.documents.library import Library
from app.history.database import Database
from app.owner import TOKEN_HEADER, OwnerAddress
from app.paths import Paths
from app.web.commands import router
from engine.errors import EngineDead
from tests.app.commands.console import Recorder
from tests.fakes_documents import FakeReader
from tests.fakes_model import FakeEngine, FakeModelServices
from tests.serving import served
from tests.waiting import until


class RunningApp:
    """The owner's routes on a real port."""

    def __init__(self, paths: Paths) -> None:
        self.engine = FakeEngine(script="Good day 🙂")
        self.services = FakeModelServices(paths, self.engine)
        self.address = OwnerAddress("127.0.0.1", 0, "token", 1)

    def at(self, port: int) -> FastAPI:
        self.address = replace(self.address, port=port)
        app = FastAPI()
        app.include_router(router(self.services, self.address.token))
        return app

    @asynccontextmanager
    async def running(self) -> AsyncIterator["RunningApp"]:
        try:
            async with served(self.at):
                yield self
        finally:
            await self.services.close()

    async def relay(self, **options: object) -> tuple[int, Recorder]:
        console = Recorder()
        wanted = Options(**options)  # type: ignore[arg-type]
        return await asyncio.to_thread(relay, self.address, wanted, console), console


@pytest.fixture
async def app(paths: Paths) -> AsyncIterator[RunningApp]:
    async with RunningApp(paths).running() as app:
        yield app


async def test_files_are_added_and_found_in_the_running_app(app: RunningApp, home: Path) -> None:
    file = home / "note.txt"
    file.write_text("The Inn rises in Switzerland.")
    app.services.__dict__["documents"] = Library(app.services.paths.documents, FakeReader())
    code, console = await app.relay(command="docs", action="add", files=(str(file),))
    assert (code, console.out) == (0, "1 file: 1 indexed.\n")
    code, console = await app.relay(command="docs", action="search", text="Inn", json=True)
    assert code == 0
    assert [hit["path"] for hit in console.json()["hits"]] == [str(file)]
    code, console = await app.relay(command="docs", action="add", files=(str(home / "no"),))
    assert code == 2 and "There is no file" in console.notes[0]


async def test_the_app_answers_its_owner(app: RunningApp) -> None:
    assert await asyncio.to_thread(app.address.answers)
    other = OwnerAddress("127.0.0.1", app.address.port, "another", 1)
    assert not await asyncio.to_thread(other.answers)


async def test_an_answer_comes_through_with_its_code(app: RunningApp) -> None:
    code, console = await app.relay(command="generate", text="Hi")
    assert (code, console.out, console.notes) == (0, "Good day 🙂\n", [])
    code, console = await app.relay(command="generate", text="Hi", json=True)
    assert console.json()["text"] == "Good day 🙂"


async def test_a_failure_comes_through_with_its_code(app: RunningApp) -> None:
    code, console = await app.relay(command="chats", action="show", ids=("nobody",))
    assert (code, console.out) == (1, "")
    assert "There is no conversation nobody" in console.notes[0]
    code, console = await app.relay(command="chats", action="delete", ids=("nobody",))
    assert (code, console.notes[0][-6:]) == (2, "--yes.")


async def test_a_fault_of_the_app_is_a_failure_too(
    app: RunningApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("app.web.commands.carry_out", broken)
    code, console = await app.relay(command="models", action="list")
    assert code == 1
    assert "unexpected" in console.notes[0]


async def test_two_commands_at_once(app: RunningApp) -> None:
    app.engine.script = None
    asking = [
        asyncio.create_task(app.relay(command="generate", text=f"Say {number}"))
        for number in range(2)
    ]
    await until(lambda: app.engine.num_running == 2)
    for number, stream in enumerate(app.engine.streams):
        stream.end(str(number))
    assert sorted([(await each)[1].out for each in asking]) == ["0\n", "1\n"]


@pytest.mark.parametrize("headers", [{}, {TOKEN_HEADER: "wrong"}])
@pytest.mark.parametrize("path", ["command", "engine"])
async def test_without_the_token_nothing_is_done(
    app: RunningApp, headers: dict[str, str], path: str
) -> None:
    async with httpx.AsyncClient(base_url=app.address.url, headers=headers) as http:
        method = "POST" if path == "command" else "GET"
        assert (await http.request(method, f"/_app/{path}", json={})).status_code == 403


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "{}", '{"command": "fly"}', '{"word": 1}', "[" * 100_000],
    ids=lambda body: body[:20],
)
async def test_what_is_no_command_is_refused(app: RunningApp, body: str) -> None:
    headers = {TOKEN_HEADER: app.address.token}
    async with httpx.AsyncClient(base_url=app.address.url, headers=headers) as http:
        assert (await http.post("/_app/command", content=body)).status_code == 400


async def test_the_caller_is_told_of_a_refusal(app: RunningApp) -> None:
    with pytest.raises(EngineDead, match="refused the command .400.: quit it"):
        await app.relay(command="fly")


async def test_a_caller_who_leaves_cancels_the_command(app: RunningApp) -> None:
    app.engine.script = None

    def begin_and_leave() -> None:
        said = lines(app.address, Options(command="generate", text="Hi"))
        assert next(said) == {"out": "Good"}
        said.close()

    leaving = threading.Thread(target=begin_and_leave)
    leaving.start()
    await until(lambda: app.engine.streams)
    app.engine.streams[0].write("Good")
    await until(lambda: app.engine.streams[0].is_aborted)
    leaving.join()


async def test_a_closed_pipe_is_not_blamed_on_the_app(app: RunningApp) -> None:
    class Closed(Recorder):
        def write(self, text: str) -> None:
            raise BrokenPipeError

    options = Options(command="generate", text="Hi")
    with pytest.raises(BrokenPipeError):
        await asyncio.to_thread(relay, app.address, options, Closed())


async def test_an_app_that_ends_in_the_middle_is_a_sentence(paths: Paths) -> None:
    async with RunningApp(paths).running() as app:
        app.engine.script = None
        asking = asyncio.create_task(app.relay(command="generate", text="Hi"))
        await until(lambda: app.engine.streams)
    with pytest.raises(EngineDead, match="The running app"):
        await asking
    # Nobody else may come to listen here meanwhile.
    with socket.socket() as nobody, pytest.raises(EngineDead, match="ended while it carried out"):
        nobody.bind(("127.0.0.1", 0))
        app.address = replace(app.address, port=nobody.getsockname()[1])
        await app.relay(command="models", action="list")


async def test_the_history_stays_usable_beside_commands(app: RunningApp) -> None:
    """The owner alone opens the file, so no command ever finds it locked."""
    conversation = await app.services.conversations.create("Kept")
    results = await asyncio.gather(
        *(app.relay(command="chats", action="list", json=True) for _ in range(5))
    )
    for code, console in results:
        assert code == 0
        assert [each["id"] for each in console.json()["chats"]] == [conversation.conversation_id]
    assert isinstance(app.services.database, Database)
