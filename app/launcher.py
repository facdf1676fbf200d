"""What a double click starts: without arguments the launcher, with them the command.

    inglenook                 something on the screen at once, the app behind it, watched over
    inglenook launch ...      the same with options
    inglenook run ...         the app alone, for a terminal
    inglenook COMMAND ...     every other command

Packages start `main`. Until the splash answers only the standard library and the file lock are
imported.
"""

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Sequence

from app.commands.parser import Parser, port
from app.documents.command import COMMAND as READ_DOCUMENTS
from app.documents.command import OCR_COMMAND as READ_PICTURES
from app.documents.embedding.command import COMMAND as EMBED_TEXTS
from app.launch.child import own_command
from app.launch.first import find_first, show_first
from app.launch.launcher import Launcher
from app.launch.start import Options
from app.launch.window import Window, show_webview
from app.media.command import COMMAND as READ_MEDIA
from app.models.adapters import divided
from app.owner import HomeLock
from app.paths import Paths
from app.processor import why_too_old
from app.web.port import bind
from engine.config import BACKENDS
from engine.errors import HomeError, InglenookError

LOOPBACK = "127.0.0.1"


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code."""
    multiprocessing.freeze_support()
    give_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == [READ_MEDIA]:
        from app.media.child import main as read_media

        return read_media()
    if given[:1] == [READ_DOCUMENTS]:
        from app.documents.child import main as read_documents

        return read_documents()
    if given[:1] == [EMBED_TEXTS]:
        from app.documents.embedding.child import main as embed_texts

        return embed_texts(given[1:])
    if given[:1] == [READ_PICTURES]:
        from app.documents.ocr_child import main as read_pictures

        return read_pictures()
    if given[:1] == ["window"]:
        return show_webview(given[1])
    if given and given[0] != "launch":
        if reason := why_too_old():
            print(reason, file=sys.stderr)
            return 1
        # Every other command imports what it needs.
        from app.cli import main as command

        return command(given)
    return launch(given[1:])


def launch(arguments: Sequence[str] = (), command: Sequence[str] = ()) -> int:
    """Show the first one that runs, or be it. `command` starts the app; empty: this program."""
    parsed = make_parser().parse_args(arguments)
    options = Options(
        opens_window=not parsed.no_open,
        is_safe=parsed.safe,
        model=parsed.model,
        draft_model=parsed.draft_model,
        adapters=tuple(parsed.adapters),
        mmproj=parsed.mmproj,
        backend=parsed.backend,
        command=tuple(command),
    )
    try:
        for adapter in options.adapters:
            divided(adapter)
        return show_or_be_first(Paths.from_environment(), options, parsed.port)
    except InglenookError as error:
        print(error, file=sys.stderr)
        return 1


def show_or_be_first(paths: Paths, options: Options, port: int | None) -> int:
    problem, lock = why_too_old(), None
    try:
        paths.create()
        lock = HomeLock.of_launcher(paths)
        first = find_first(paths, lock)
    except HomeError as error:
        # Said on the splash, where it is seen by who has no terminal.
        problem, lock, first = str(error), None, None
    if first is not None:
        say(f"Inglenook is running already: {first.url}")
        if options.opens_window:
            window = Window(first.url, paths.browser, own_command(), say)
            show_first(first, window.open_and_wait)
        return 0
    sock = bind(LOOPBACK, port, tell)
    return Launcher(paths, sock, lock, options, say, problem).run()


def make_parser() -> Parser:
    parser = Parser(
        prog="inglenook launch",
        description="Start Inglenook as a double click does: watched over, in its own window.",
    )
    parser.add_argument("--port", type=port, metavar="N", help="the port (default: a free one)")
    parser.add_argument("--no-open", action="store_true", help="open no window and no browser")
    parser.add_argument("--model", default="", metavar="M", help="a GGUF file or a name")
    parser.add_argument("--draft-model", default="", metavar="M", help="one that guesses for it")
    parser.add_argument(
        "--lora", dest="adapters", action="append", default=[], metavar="FILE[:SCALE]"
    )
    parser.add_argument("--mmproj", default="", metavar="FILE", help="what the model sees by")
    parser.add_argument("--backend", default="auto", choices=BACKENDS, help="who computes")
    parser.add_argument("--safe", action="store_true", help="little memory and no extras")
    return parser


def say(text: str) -> None:
    """To the terminal, if there is one."""
    with contextlib.suppress(OSError, ValueError):
        print(text, flush=True)


def tell(text: str) -> None:
    """Beside what is said: to the terminal as well, if there is one."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def give_streams() -> None:
    """A program without a console has none, and whatever prints would fail."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
