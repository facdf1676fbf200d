"""The `inglenook` command: parse, find the owner of the home, carry out, and end with a code.

0 done, 1 failed with one sentence on standard error, 2 wrong use.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from app.bench.benches import BENCHES, measure
from app.commands import quantize
from app.commands.arguments import make_parser
from app.commands.carry_out import COMMANDS, carry_out
from app.commands.console import Console, Terminal, shown
from app.commands.docs import BROKEN_OFF
from app.commands.given import absolute, adapters_of, options_of
from app.commands.options import Options
from app.commands.parser import Parser
from app.commands.relay import relay
from app.eval.evals import EVALS
from app.owner import HomeLock, OwnerAddress, own_or_find, owner_address
from app.paths import Paths
from app.selfcheck import selfcheck
from app.services import Services
from engine.errors import DiskFull, HomeBusy, HomeError, InglenookError, UsageError

COMMAND_PATIENCE_S = 20.0
QUIET_S = 2.0
"""Most commands end sooner; what is waited for longer is said."""
EVAL_HELP = "Quality measured on data: a table, and as last line one JSON object."
BENCH_HELP = "One of our benchmarks: a table, and as last line one JSON object."


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code; a message for the user is never a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0].startswith("-") and given[0] not in ("-h", "--help", "--version"):
        given.insert(0, "run")
    try:
        if given[0] == "bench":
            parser = Parser(prog="inglenook bench", description=BENCH_HELP)
            return measure("bench", BENCHES, given[1:], parser)
        if given[0] == "eval":
            parser = Parser(prog="inglenook eval", description=EVAL_HELP)
            return measure("eval", EVALS, given[1:], parser)
        if given[0] == "launch":
            # It imports as little as it can, so it does not belong to what stands above.
            from app.launcher import launch

            return launch(given[1:])
        if given[:2] == ["models", "quantize"]:
            parser = Parser(prog="inglenook models quantize", description=quantize.SUMMARY)
            return quantize.run(given[2:], parser)
        parsed = make_parser().parse_args(given)
        if parsed.command == "run":
            return run_app(parsed)
        if parsed.command == "selfcheck":
            return selfcheck(parsed.only)
        return run_command(options_of(parsed))
    except InglenookError as error:
        print(shown(str(error)), file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        if given[:2] == ["docs", "add"]:
            print(BROKEN_OFF, file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has enough (`| head`); nothing is left to be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        print(f"This could not be done: {error.strerror or error}{place}.", file=sys.stderr)
        return 1


def run_app(parsed: argparse.Namespace) -> int:
    # The page is imported for this command alone: it takes seconds.
    from app.run import Run, run, run_launched

    asked = Run(
        host=parsed.host,
        port=parsed.port,
        model=parsed.model,
        draft_model=parsed.draft_model,
        adapters=adapters_of(parsed.adapters),
        mmproj=str(absolute(parsed.mmproj)) if parsed.mmproj else "",
        backend=parsed.backend,
        opens_browser=not parsed.no_open,
        is_safe=parsed.safe,
    )
    return run_launched(asked) if parsed.launched else run(asked)


def run_command(options: Options) -> int:
    """In the running app when there is one, otherwise here."""
    paths = Paths.from_environment()
    console = Terminal()
    try:
        paths.create()
    except HomeError:
        if not COMMANDS[options.command].tells_of_home:
            raise
        # Nobody can own it, and what is wrong with it is told beside all the rest.
        return asyncio.run(run_here(paths, options, console, makes_folders=False))
    if not COMMANDS[options.command].must_own(options):
        address = owner_address(paths)
        if address is not None and address.answers():
            return relay(address, options, console)
        return asyncio.run(run_here(paths, options, console))
    only_reads = options.action in COMMANDS[options.command].reading
    try:
        found = own_or_find(paths, 0) if only_reads else find_home(paths, console)
    except HomeBusy:
        if not only_reads:
            raise
        return asyncio.run(run_here(paths, options, console, only_reads=True))
    match found:
        case OwnerAddress():
            return relay(found, options, console)
        case HomeLock():
            with found:
                try:
                    return asyncio.run(run_here(paths, options, console))
                except DiskFull:
                    if not only_reads:
                        raise
                    return asyncio.run(run_here(paths, options, console, only_reads=True))


def find_home(paths: Paths, console: Console) -> HomeLock | OwnerAddress:
    """Own the home, or find who does; a person is told what is waited for. Raises HomeBusy."""
    quiet_s = min(QUIET_S, COMMAND_PATIENCE_S)
    try:
        return own_or_find(paths, quiet_s)
    except HomeBusy:
        left_s = COMMAND_PATIENCE_S - quiet_s
        console.note(
            "Another Inglenook works in this home and does not answer yet, as `docs add` while it"
            f" reads and the app while it starts: this command waits, {left_s:.0f} s at most."
        )
        return own_or_find(paths, left_s)


async def run_here(
    paths: Paths,
    options: Options,
    console: Terminal,
    *,
    makes_folders: bool = True,
    only_reads: bool = False,
) -> int:
    services = Services(
        paths,
        options.model,
        options.draft_model,
        adapters=options.adapters,
        mmproj=options.mmproj,
        backend=options.backend,
        makes_folders=makes_folders,
        only_reads=only_reads,
    )
    try:
        await carry_out(services, options, console)
    finally:
        await services.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
