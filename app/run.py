"""`inglenook run`: own the home, load the model beside the page, serve until told to end.

Alone it listens on a socket of its own; under a launcher on the one that it is given.
"""

import asyncio
import logging
import logging.handlers
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from app.api import openai
from app.interpreter import take_short_turns
from app.launch.link import Doing, Link
from app.launch.start_facts import StartFacts
from app.launch.watch import Watch
from app.owner import HomeLock, OwnerAddress, own_or_find
from app.paths import Paths
from app.safe_mode import leave_graphics_card
from app.services import Services
from app.web.port import bind
from engine.errors import HomeBusy, HomeError, InglenookError, UsageError

PATIENCE_S = 60.0
DOOR_POLL_S = 0.005
WAITING = "Waiting for another command of Inglenook to end"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is asked of the app. `port` None takes a free one; `model` and `draft_model` go before
    the saved choices, `adapters` before those of the model. `link` is the line to the
    launcher that started it, if there is one."""

    host: str = "127.0.0.1"
    port: int | None = None
    model: str = ""
    draft_model: str = ""
    adapters: tuple[tuple[str, float], ...] = ()
    mmproj: str = ""
    backend: str = "auto"
    opens_browser: bool = True
    is_safe: bool = False
    link: Link | None = None

    @property
    def names_models(self) -> bool:
        named = self.model or self.draft_model or self.adapters or self.mmproj
        return bool(named) or self.backend != "auto"


def run(asked: Run) -> int:
    """Serve the page; with another app on this home, open that one and return."""
    if asked.host not in LOOPBACK:
        raise UsageError(
            f"Inglenook listens on this machine only, and {asked.host} is not one of its own"
            f" addresses ({', '.join(LOOPBACK)})."
        )
    signal.signal(signal.SIGTERM, end_early)
    if asked.is_safe:
        leave_graphics_card()
    paths = Paths.from_environment()
    paths.create()
    found = find(paths, asked.link)
    match found:
        case OwnerAddress() if asked.link is not None:
            raise HomeError(
                f"Another Inglenook works at {found.url}: use that one, or quit it and try again."
            )
        case OwnerAddress():
            print(f"Inglenook is running already: {found.url}", flush=True)
            if asked.names_models:
                print(
                    "It keeps its model and engine: quit it first to use others.",
                    file=sys.stderr,
                )
            if asked.opens_browser:
                open_browser(found.url)
        case HomeLock():
            with found:
                serve_home(paths, found, asked)
    return 0


def find(paths: Paths, link: Link | None) -> HomeLock | OwnerAddress:
    """Own the home, or find who does; a launcher is told what is waited for."""
    try:
        return own_or_find(paths, 0)
    except HomeBusy:
        if link is not None:
            link.tell(Doing(waiting=WAITING))
        return own_or_find(paths, PATIENCE_S)


def run_launched(asked: Run) -> int:
    """The same under a launcher, which hears why the app could not start."""
    signal.signal(signal.SIGTERM, end_early)
    link = Link.take()
    try:
        link.tell(Doing())
        return run(replace(asked, link=link))
    except InglenookError as error:
        link.failed(str(error))
        raise


def end_early(*_: object) -> NoReturn:
    """Until the server answers this signal itself: no failure, and what was begun is tidied up."""
    sys.exit(0)


def serve_home(paths: Paths, lock: HomeLock, asked: Run) -> None:
    keep_log(paths)
    take_short_turns()
    port_notes: list[str] = []
    if asked.link is not None:
        sock, host = asked.link.socket, asked.host
    else:
        host = "127.0.0.1" if asked.host == "localhost" else asked.host
        sock = bind(host, asked.port, port_notes.append)
    asyncio.run(serve_app(paths, lock, sock, host, asked, port_notes))


async def serve_app(
    paths: Paths,
    lock: HomeLock,
    sock: socket.socket,
    host: str,
    asked: Run,
    port_notes: Sequence[str] = (),
) -> None:
    """`port_notes` are said once the app is ready: an app that fails says why, and nothing else."""
    from app.web import commands, launch, server

    link = asked.link
    facts = StartFacts(
        is_safe=asked.is_safe,
        is_launched=link is not None,
        crash="" if link is None else link.orders.crash,
        note="" if link is None else link.orders.note,
    )
    services = Services(
        paths, asked.model, asked.draft_model, facts, asked.adapters, asked.mmproj, asked.backend
    )
    watch = None if link is None else Watch(services, link)
    watching: asyncio.Task[None] | None = None
    try:
        # First of all the history: one that cannot be used ends here, before anything is shown.
        await services.tidy()
        services.start()
        if watch is not None:
            watching = asyncio.create_task(watch.run())
        await asyncio.to_thread(import_page, paths)
        if asked.names_models:
            # Named on the command line: a model that cannot be used ends the command.
            await services.chat_model()
        address = lock.address(host, sock.getsockname()[1])
        services.url = address.url
        routers = [
            openai.router(services, services.api_key),
            commands.router(services, address.token),
            launch.router(services, paths, address.token, link),
        ]
        app = server.build(services, address.port, paths.cache, routers)

        def ready() -> None:
            lock.announce(address)
            print(f"Inglenook is ready: {address.url}", flush=True)
            for note in port_notes:
                print(note, file=sys.stderr)
            if watch is not None:
                watch.is_page_ready = True
                watch.look()
            if asked.opens_browser:
                open_browser(address.url)

        if link is not None:
            await take_door(link, address.url)
        await server.serve(app, sock, ready)
    finally:
        if watching is not None:
            watching.cancel()
        sock.close()
        await services.close()


async def take_door(link: Link, url: str) -> None:
    """Until the launcher has left the socket to this process."""
    link.ready(url)
    while not link.has_door:
        await asyncio.sleep(DOOR_POLL_S)


def import_page(paths: Paths) -> None:
    """Gradio takes seconds to import; meanwhile the model loads on another core."""
    from app.web import environment

    environment.prepare(paths.cache)
    import app.ui.page  # noqa: F401


def open_browser(url: str) -> None:
    """In a thread: a browser that stays in the foreground must not hold up the app."""
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


def keep_log(paths: Paths) -> None:
    """Warnings and errors go to a file of bounded size, readable by this user only."""
    file = paths.logs / "inglenook.log"
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise HomeError(
            f"The log {file} cannot be written ({error.strerror}): make it writable, or choose"
            " another place with INGLENOOK_HOME."
        ) from error
    handler = logging.handlers.RotatingFileHandler(
        file, maxBytes=1_000_000, backupCount=3, encoding="utf-8"
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    # On a full disk the log stays behind; it need not fill the terminal instead.
    logging.raiseExceptions = False
