"""`inglenook run`: own the home, load the model beside the page, serve until told to end."""

import asyncio
import logging
import logging.handlers
import os
import signal
import socket
import sys
import threading
import webbrowser
from typing import NoReturn

from app.api import openai
from app.owner import HomeLock, OwnerAddress, own_or_find
from app.paths import Paths
from app.services import Services
from engine.errors import HomeError, UsageError

PATIENCE_S = 60.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def run(host: str, port: int | None, model: str, opens_browser: bool, draft_model: str = "") -> int:
    """Serve the page; with another app on this home, open that one and return."""
    if host not in LOOPBACK:
        raise UsageError(
            f"Inglenook listens on this machine only, and {host} is not one of its own addresses"
            f" ({', '.join(LOOPBACK)})."
        )
    signal.signal(signal.SIGTERM, end_early)
    paths = Paths.from_environment()
    paths.create()
    found = own_or_find(paths, PATIENCE_S)
    match found:
        case OwnerAddress():
            print(f"Inglenook is running already: {found.url}", flush=True)
            if model or draft_model:
                print("It keeps its model: quit it first to use another one.", file=sys.stderr)
            if opens_browser:
                open_browser(found.url)
        case HomeLock():
            with found:
                serve_home(paths, found, host, port, (model, draft_model), opens_browser)
    return 0


def end_early(*_: object) -> NoReturn:
    """Until the server answers this signal itself: no failure, and what was begun is tidied up."""
    sys.exit(0)


def serve_home(
    paths: Paths,
    lock: HomeLock,
    host: str,
    port: int | None,
    models: tuple[str, str],
    opens_browser: bool,
) -> None:
    from app.web.server import bind

    keep_log(paths)
    host = "127.0.0.1" if host == "localhost" else host
    sock = bind(host, port)
    asyncio.run(serve_app(paths, lock, sock, host, models, opens_browser))


async def serve_app(
    paths: Paths,
    lock: HomeLock,
    sock: socket.socket,
    host: str,
    models: tuple[str, str],
    opens_browser: bool,
) -> None:
    """`models`: the one that was named on the command line, and the one that drafts for it."""
    from app.web import commands, server

    services = Services(paths, *models)
    try:
        # First of all the history: one that cannot be used ends here, before anything is shown.
        await services.tidy()
        services.start()
        await asyncio.to_thread(import_page, paths)
        if any(models):
            # Named on the command line: a model that cannot be used ends the command.
            await services.chat_model()
        address = lock.address(host, sock.getsockname()[1])
        services.url = address.url
        routers = [
            openai.router(services, services.api_key),
            commands.router(services, address.token),
        ]
        app = server.build(services, address.port, paths.cache, routers)

        def ready() -> None:
            lock.announce(address)
            print(f"Inglenook is ready: {address.url}", flush=True)
            if opens_browser:
                open_browser(address.url)

        await server.serve(app, sock, ready)
    finally:
        sock.close()
        await services.close()


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
