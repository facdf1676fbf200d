"""`inglenook models quantize`: a smaller file of the same model, made in this process.

Never in the running app: it takes every core for minutes.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from app.amounts import bytes_in_words
from app.models.local import STARTER, find_model
from app.paths import Paths
from app.settings import load_settings
from engine.backends.llama_cpp.file_types import Quantized
from engine.cores import usable_cores
from engine.errors import UsageError

DEFAULT_TYPE = "Q4_K_M"
SUMMARY = "make a model file smaller, by rounding its weights to fewer bits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN", help="a GGUF file or a name of `models list`")
    parser.add_argument(
        "target", metavar="OUT", help="the new file; a bare name goes into the models folder"
    )
    parser.add_argument(
        "--type", default=DEFAULT_TYPE, metavar="T", help=f"such as Q8_0 (default {DEFAULT_TYPE})"
    )
    parser.add_argument(
        "--again", action="store_true", help="even if IN is quantised already; that loses more"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object and nothing else")


def run(arguments: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """The exit code; raises the InglenookError that ends the command."""
    add_arguments(parser)
    options = parser.parse_args(arguments)
    paths = Paths.from_environment()
    target = target_of(paths, options.target)
    source = find_model(paths, load_settings(paths.settings), options.source)
    began = time.monotonic()
    made = quantize_here(source, target, options.type.upper(), options.again)
    seconds = time.monotonic() - began
    if options.json:
        result = {
            "source": str(source),
            "target": str(target),
            "type": options.type.upper(),
            "bytes_before": made.bytes_before,
            "bytes_after": made.bytes_after,
            "bits_per_weight": made.bits_per_weight,
            "seconds": seconds,
        }
        print(json.dumps(result))
    else:
        print(
            f"{target}: {bytes_in_words(made.bytes_after)} instead of"
            f" {bytes_in_words(made.bytes_before)}, {made.bits_per_weight:.2f} bits a weight, in"
            f" {seconds:,.0f} s"
        )
    return 0


def target_of(paths: Paths, name: str) -> Path:
    """A path as it is given; a bare name is a new file in the models folder. Raises UsageError."""
    if not name.strip():
        raise UsageError("The new file has no name: give one, or a path, after the old file.")
    if name == STARTER:
        raise UsageError(
            f"{STARTER!r} is the name of the model that comes with the app: choose another one."
        )
    if Path(name).name == name and not name.endswith(".gguf"):
        paths.create()
        return paths.models / f"{name}.gguf"
    return Path(name).expanduser().absolute()


def quantize_here(source: Path, target: Path, type_name: str, allow_again: bool) -> Quantized:
    """With its progress on standard error. Ctrl-C ends it at once and leaves no file."""
    # Loading the library takes a while, and wrong use should be told before.
    from engine.backends.llama_cpp.quantize import discard, quantize

    # The library does not come back before it is done, and only the main thread hears Ctrl-C.
    work: Future[Quantized] = Future()

    def do() -> None:
        try:
            work.set_result(
                quantize(
                    source,
                    target,
                    type_name,
                    num_threads=usable_cores(),
                    allow_again=allow_again,
                    progress=show_progress,
                )
            )
        except BaseException as error:
            work.set_exception(error)

    Thread(target=do, name="quantize", daemon=True).start()
    try:
        return work.result()
    except KeyboardInterrupt:
        discard(target)
        raise
    finally:
        end_progress()


def show_progress(done: int, total: int) -> None:
    """One line that is written over, where somebody sees it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done:,} of {total:,} tensors ({done / total:.0%})")
        sys.stderr.flush()


def end_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\n")
