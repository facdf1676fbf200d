"""Options that several benchmarks have, and what is checked of them."""

import argparse
from pathlib import Path

from engine.config import DEFAULT_CONTEXT_TOKENS
from engine.errors import UsageError


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="", metavar="M", help="a GGUF file or a name")


def add_context(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--context", type=int, default=DEFAULT_CONTEXT_TOKENS, metavar="N")


def add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", metavar="FILE", help="llama-server to compare with")


def add_effort(
    parser: argparse.ArgumentParser, *, pairs: int, minutes: float, each: str = ""
) -> None:
    """How long to measure; `each` says what the minutes are for, where it is not all."""
    parser.add_argument("--pairs", type=int, default=pairs, metavar="N", help="at least")
    at_most = f"at most, for each {each}" if each else "at most"
    parser.add_argument("--minutes", type=float, default=minutes, help=at_most)


def program_of(server: str) -> Path:
    """The file of llama-server. Raises UsageError where there is none."""
    program = Path(server)
    if not program.is_file():
        raise UsageError(f"There is no llama-server at {server}.")
    return program
